#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what is published beside the Linux wheels: the source distribution, and one wheel for every
# system of the client, and of the toolkit without the backend.
#
#   tools/build_dist.sh DIR [OPTION OF build]...
set -euo pipefail
output=$1
shift
python=${PYTHON:-python3}

"$python" -m build "$@" --sdist --outdir "$output" .
"$python" -m build "$@" --wheel --outdir "$output" \
  -C build-dir=build/toolkit-wheel \
  -C cmake.define.CT2TRITON_BUILD_PLUGIN=OFF -C wheel.platlib=false -C wheel.py-api=py3 .
"$python" -m build "$@" --wheel --outdir "$output" python
