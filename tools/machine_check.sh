#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks this project on a machine with an NVIDIA GPU or many cores, and writes one report in
# Markdown:
#
#   tools/machine_check.sh [--cpu] [--short] [--part PART]... [--model SOURCE] [--output FOLDER]
#
# Parts, all unless some are named, in this order: `kernels` (our kernels against CTranslate2, and
# their times), `loop` (the decode loop on them), `served` (a server, its tests, answers and memory),
# `speed` (ct2-bench on the model), `aims` (loop, calls and Triton's Python backend on models of
# real sizes) and `cores` (the processor alone: two of its cores against all). Together they take
# about 50 minutes. --cpu runs `served`, `speed` and `cores`, all on the processor;
# --short takes minutes, and tells nothing about speed; --model is what ct2-prepare takes
# (default: demo). The report is FOLDER/report.md, which begins with a verdict, beside the files of
# each step. A step that fails is named, the others go on, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

device=gpu model=demo output=machine-check-$(date +%Y%m%d-%H%M%S) parts=
comparison=(--stored float32 --rows 1000)
bench=(--minutes 4 --rounds 3)
aims=(--minutes 3 --rounds 2)
cores=(--minutes 2 --rounds 2) base=(--shape transformer-base) large=(--shape nllb-600m) loops=4
while [ $# -gt 0 ]; do
  case $1 in
    --cpu) device=cpu ;;
    --short)
      comparison=(--stored int8 --rows 12)
      aims=(--minutes 0.02 --rounds 1)
      cores=("${aims[@]}") base=(--model demo --random-ids 1) large=("${base[@]}") loops=0.2
      bench=(--minutes 0.02 --rounds 1 --scenario single:4
        --contender ct2-triton-int8 --contender python-ctranslate2-int8)
      export CT2_TRITON_FEWER_ROWS=${CT2_TRITON_FEWER_ROWS:-40} ;;
    --part)
      case ${2:-} in kernels | loop | served | speed | aims | cores) parts="$parts $2 " ;;
        *) echo "machine_check.sh: no part ${2:-}; its head says which there are" >&2; exit 2 ;;
      esac
      shift ;;
    --model) model=$2; shift ;;
    --output) output=$2; shift ;;
    *) echo "machine_check.sh: unknown argument $1; its head says which there are" >&2; exit 2 ;;
  esac
  shift
done
all=" kernels  loop  served  speed  aims  cores "
[ "$device" = gpu ] || all=" served  speed  cores "
parts=${parts:-$all}
for part in $parts; do
  [[ $all = *" $part "* ]] || { echo "machine_check.sh: part $part needs a GPU" >&2; exit 2; }
done
[[ $parts != " cores " ]] || device=cpu
export PATH=$PWD/.venv/bin:$PATH
all_cores=$(python -c 'from ct2_triton.bench.cores import count_cores as f; print(f())')
few=2 && [ "$all_cores" -gt 2 ] || few=1  # cores, to compare with all
# Processes of the load generator: a quarter of the cores, up to 8.
clients=$((all_cores < 8 ? 1 : all_cores > 32 ? 8 : all_cores / 4))
if [ "$device" = gpu ]; then
  python tools/machine_report.py missing $parts || exit 2
  # The server finds cuBLAS in a wheel; what runs without it is told where.
  cublas=$(python -c 'from ct2_triton.serve.machine import cublas_wheel_folder as f; print(f() or "")')
  export LD_LIBRARY_PATH=$cublas:${LD_LIBRARY_PATH:-}
fi
mkdir "$output"
output=$(cd "$output" && pwd)
steps=$output/steps.md
touch "$steps" "$output/steps.tsv"
failed=0

# Writes what there is, also when the check is ended early.
write_report() {
  local verdict
  verdict=$(python tools/machine_report.py verdict "$output") || verdict="There is no verdict."
  printf '%s\n\n' "$verdict"
  {
    echo "# Check on a $device"
    echo
    echo "$(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)," \
      "model $model."
    echo
    echo "$verdict"
    cat "$steps"
  } >"$output/report.md"
  echo "report: $output/report.md"
}
trap write_report EXIT
end_early() {
  [ -z "$child" ] || kill "$child" 2>/dev/null || true
  printf '%s\tEnded early\n' "$1" >>"$output/steps.tsv"
  exit "$1"
}
child=
trap 'end_early 143' TERM
trap 'end_early 130' INT

# step TITLE COMMAND...: runs a command; its output is a file of its own, and its end in the report.
step() {
  local title=$1 file
  shift
  file=$output/$(tr -c '[:alnum:]\n' - <<<"$title").txt
  echo "$title ..."
  local status=0
  "$@" >"$file" 2>&1 &
  child=$!
  wait "$child" || status=$?
  child=
  [ "$status" -eq 0 ] || failed=1
  printf '%s\t%s\n' "$status" "$title" >>"$output/steps.tsv"
  {
    printf '\n## %s\n\n' "$title"
    if [ "$status" -eq 0 ]; then echo "Passed."; else echo "FAILED, status $status."; fi
    printf '\n```\n$ %s\n' "$*"
    tail -n 30 "$file"
    printf '```\n'
  } >>"$steps"
}

# part FILE: puts what a step has written for the reader into the report.
part() {
  if [ -e "$1" ]; then
    echo
    sed 's/^#/##/' "$1"
  fi >>"$steps"
}

wanted() { [[ $parts = *" $1 "* ]]; }

# compared NAME OPTION...: a run of ct2-bench for the table of aims.
compared() {
  local name=$1
  shift
  step "Speed of $name" ct2-bench --device gpu "$@" "${aims[@]}" --client-processes "$clients" \
    --output "$output/aims/$name"
}

# on_cores NAME OPTION...: a run of ct2-bench for the table of aims of cores.
on_cores() {
  local name=$1
  shift
  step "Cores: $name" ct2-bench "$@" "${cores[@]}" --client-processes "$clients" \
    --output "$output/cores/$name"
}

gpu_tests() { python -m pytest -q -rs -m gpu -p no:cacheprovider "$@"; }

if [ "$device" = gpu ]; then
  ! command -v nvidia-smi >/dev/null || step "The GPU" nvidia-smi
  step "Kernels are compiled" python tools/gpu_images.py --install --jobs "$(nproc)"
fi
if wanted kernels; then
  step "Kernels" benchmarks/gpu/check_kernels.sh "$output/kernels" build/gpu_kernels.bin
  step "Times of kernels" python tools/machine_report.py kernels "$output"
  part "$output/kernels.md"
fi
if wanted loop; then
  step "The loop on our kernels" gpu_tests tests/core/test_gpu_loop.py
fi
if wanted served; then
  step "A model is prepared" ct2-prepare "$model" --name checked --instance-kind "$device" \
    --model-repository "$output/models"
  step "The server and the engine" ct2-serve --check --free-ports \
    --model-repository "$output/models" checked
  step "Tests that need a GPU" \
    gpu_tests tests/serve tests/server/test_gpu.py tests/bench/test_machine_check.py
  step "Answers and memory" \
    python tools/device_report.py --device "$device" --model "$model" "${comparison[@]}" \
    --output "$output/answers.md"
  part "$output/answers.md"
fi
if wanted speed; then
  step "Speed" ct2-bench --device "$device" --model "$model" "${bench[@]}" --output "$output/bench"
  part "$output/bench/report.md"
  sed -i 's#](\([a-z0-9.-]*\.png\))#](bench/\1)#' "$steps"
fi
if wanted aims; then
  ours=(--contender ct2-triton-float16 --contender ct2-triton-loop-float16)
  python=(--contender python-transformers-float16)
  int8=(--contender ct2-triton-loop-int8_float16)
  compared transformer-base --shape transformer-base "${ours[@]}" "${python[@]}" \
    --scenario single:1 --scenario single:4 --scenario single:16 --scenario single:48 \
    --scenario single:128
  compared four-models --shape transformer-base --models 4 --distinct "${ours[@]}" "${python[@]}" \
    --scenario streams:4 --scenario streams:48
  compared nllb-600m --shape nllb-600m "${ours[@]}" "${int8[@]}" \
    --scenario single:1 --scenario single:48
  # With int8 weights and a list of a tenth of the vocabulary, against the same calls as above:
  # float16 and the whole vocabulary.
  step "nllb-600m is written" python -c "import sys; from pathlib import Path
from ct2_triton.bench.shapes import write_shape
write_shape('nllb-600m', Path(sys.argv[1]))" "$output"
  step "nllb-600m is prepared with a list" ct2-prepare "$output/nllb-600m" --name listed \
    --quantization int8_float16 --instance-kind "$device" --model-repository "$output/models" \
    --shortlist-from deu_Latn=python/ct2_triton/bench/sentences.txt
  step "The list has a usual size" python tools/machine_report.py widen "$output/models/listed"
  compared nllb-listed --model "$output/models/listed" --contender ct2-triton-float16 "${int8[@]}" \
    --to de --scenario single:1 --scenario single:48
  step "Aims" python tools/machine_report.py aims "$output"
  part "$output/aims.md"
fi
if wanted cores; then
  mkdir "$output/cores"
  ! command -v lscpu >/dev/null || step "The processor" bash -c "lscpu | grep -vE '^(Flags|Vuln)'"
  int8=(--contender "ct2-triton-int8@$few" --contender ct2-triton-int8)
  on_cores transformer-base "${base[@]}" "${int8[@]}" \
    --scenario single:1 --scenario single:48 --scenario single:512
  # Each sentence to all models: 48 and 512 rows at a time.
  on_cores four-models "${base[@]}" "${int8[@]}" --models 4 --distinct \
    --scenario streams:12 --scenario streams:128
  for count in $(printf '%s\n' "$few" "$all_cores" | sort -nu); do
    step "First token on $count of the cores" python benchmarks/measure_loops.py --cores "$count" \
      --models 1 --streams 48 --many "" --seconds "$loops" --output "$output/cores/loops-$count.json"
  done
  on_cores nllb-600m "${large[@]}" --contender ct2-triton-int8@1 --contender ct2-triton-int8 \
    --scenario single:1
  step "Aims of cores" python tools/machine_report.py cores "$output"
  part "$output/cores.md"
fi
exit "$failed"
