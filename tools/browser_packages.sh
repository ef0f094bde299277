#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Chromium and its driver for the tests of pages, as root on Debian. Elsewhere,
# or where they cannot be had, those tests are skipped and say so.
set -euo pipefail

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "no chromium and chromedriver: the tests of pages will be skipped" >&2
  exit 0
fi
echo "installing Debian packages: chromium chromium-driver"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver \
  fonts-dejavu-core >/dev/null ||
  echo "they cannot be had: the tests of pages will be skipped" >&2
