#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the kernels of backend/gpu/ on a real GPU, for the first time and after changes; 24 minutes
# at most:
#
#   benchmarks/gpu/check_kernels.sh OUTPUT [IMAGES]
#
# 1. compiles the kernels, unless IMAGES is a file that tools/gpu_images.py wrote elsewhere;
# 2. sees that they run, and holds them against CTranslate2, with the tests of the emulation;
# 3. times encoders and steps of several shapes (raw: OUTPUT/times.json, also if the time is over);
# 4. looks for races and wrong addresses with compute-sanitizer, where it is installed.
# A part that fails is named, the others go on, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir "$1"
output=$(cd "$1" && pwd)
images=${2:-$output/kernels.bin}
export PATH=$PWD/.venv/bin:$PATH
export CT2_TRITON_TEST_CUDA=libcuda.so.1 CT2_TRITON_TEST_GPU_IMAGES=$images
failed=0
part() {
  local name=$1 seconds=$2
  shift 2
  echo "== $name"
  timeout "$seconds" "$@" 2>&1 | tee "$output/$name.log" || { echo "$name failed"; failed=1; }
}
nvidia-smi | tee "$output/gpu.log" || true
[ -f "$images" ] || part images 300 python tools/gpu_images.py --output "$images" --jobs 8
part first 120 python -m pytest -q tests/core/test_gpu_decoder.py -k alone_and_in_company
part tests 300 python -m pytest -q tests/core/test_gpu_decoder.py tests/core/test_gpu_lists.py
part times 300 python benchmarks/gpu/time_steps.py "$images" --output "$output/times.json"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    part "$tool" 200 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      python -m pytest -q tests/core/test_gpu_decoder.py -k "alone_and_in_company or rules"
  done
else
  echo "compute-sanitizer is not installed: nothing has looked for races and wrong addresses"
fi
exit $failed
