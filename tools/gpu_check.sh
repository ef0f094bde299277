#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks this project on a machine with an NVIDIA GPU, and writes one report in Markdown:
#
#   tools/gpu_check.sh [--cpu] [--short] [--model SOURCE] [--output FOLDER]
#
# --cpu runs the same steps on the processor; --short takes a minute, and tells nothing about speed;
# --model is what ct2-prepare takes (default: demo). The report is FOLDER/report.md, beside the files
# of each step. A step that fails is named, the others go on, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

device=gpu model=demo output=gpu-check-$(date +%Y%m%d-%H%M%S)
comparison=(--stored float32 --rows 1000)
bench=(--minutes 8 --rounds 3)
while [ $# -gt 0 ]; do
  case $1 in
    --cpu) device=cpu ;;
    --short)
      comparison=(--stored int8 --rows 12)
      bench=(--minutes 0.02 --rounds 1 --scenario single:4
        --contender ct2-triton-int8 --contender python-ctranslate2-int8) ;;
    --model) model=$2; shift ;;
    --output) output=$2; shift ;;
    *) echo "gpu_check.sh: unknown argument $1; its head says which there are" >&2; exit 2 ;;
  esac
  shift
done
export PATH=$PWD/.venv/bin:$PATH
if [ "$device" = gpu ] && ! nvidia-smi >/dev/null 2>&1; then
  echo "gpu_check.sh: nvidia-smi finds no GPU here; --cpu runs the same steps without one" >&2
  exit 2
fi
if [ "$device" = gpu ]; then
  # The server finds cuBLAS in a wheel; what runs without it is told where.
  cublas=$(python -c 'from ct2_triton.serve.gpu import cublas_wheel_folder as f; print(f() or "")')
  export LD_LIBRARY_PATH=$cublas:${LD_LIBRARY_PATH:-}
fi
mkdir "$output"
output=$(cd "$output" && pwd)
report=$output/report.md
failed=0

{
  echo "# Check on a $device"
  echo
  echo "$(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), model $model."
} >"$report"

# step TITLE COMMAND...: runs a command; its output is a file of its own, and its end in the report.
step() {
  local title=$1 file
  shift
  file=$output/$(tr -c '[:alnum:]\n' - <<<"$title").txt
  echo "$title ..."
  local status=0
  "$@" >"$file" 2>&1 || status=$?
  [ "$status" -eq 0 ] || failed=1
  {
    printf '\n## %s\n\n' "$title"
    if [ "$status" -eq 0 ]; then echo "Passed."; else echo "FAILED, status $status."; fi
    printf '\n```\n$ %s\n' "$*"
    tail -n 30 "$file"
    printf '```\n'
  } >>"$report"
}

# part FILE: puts what a step has written for the reader into the report.
part() {
  if [ -e "$1" ]; then
    echo
    sed 's/^#/##/' "$1"
  fi >>"$report"
}

[ "$device" = cpu ] || step "The GPU" nvidia-smi
step "A model is prepared" ct2-prepare "$model" --name checked --instance-kind "$device" \
  --model-repository "$output/models"
step "The server and the engine" ct2-serve --check --free-ports \
  --model-repository "$output/models" checked
step "Tests that need a GPU" \
  python -m pytest -q -rs -m gpu -p no:cacheprovider \
  tests/serve tests/server/test_gpu.py tests/bench/test_gpu_check.py
step "Answers and memory" \
  python tools/device_report.py --device "$device" --model "$model" "${comparison[@]}" \
  --output "$output/answers.md"
part "$output/answers.md"
step "Speed" ct2-bench --device "$device" --model "$model" "${bench[@]}" --output "$output/bench"
part "$output/bench/report.md"
sed -i 's#](\([a-z0-9.-]*\.png\))#](bench/\1)#' "$report"
echo "report: $report"
exit "$failed"
