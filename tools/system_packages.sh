#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for what pip cannot bring: a C++17 compiler, Python's headers, the venv module. What is
# missing is installed from Debian's packages when root, else named in one sentence.
set -euo pipefail

python=${PYTHON:-python3}
missing=()

command -v "$python" >/dev/null || missing+=(python3 python3-venv python3-dev)
command -v "${CXX:-g++}" >/dev/null || missing+=(g++)
if command -v "$python" >/dev/null; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "ct2-triton needs Python 3.10 or later; name one with 'make PYTHON=python3.11'." >&2
    exit 1
  }
  "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' \
    || missing+=(python3-dev)
fi

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "ct2-triton needs these packages first: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
