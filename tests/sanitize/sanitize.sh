#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with a sanitizer into build/<asan|tsan> and runs a part of the tests on that build.
#
#   tests/sanitize/sanitize.sh asan|tsan canary             each kind of mistake is found
#   tests/sanitize/sanitize.sh asan|tsan native [seconds]   the programs of tests/native
#   tests/sanitize/sanitize.sh asan|tsan core [pytest ...]  tests/core, on that build of the core
#   tests/sanitize/sanitize.sh asan|tsan server [pytest ...]  tests/server, on that build of the backend, in
#                                                  the real tritonserver; without arguments the
#                                                  mixed load for 60 s and the hostile and
#                                                  generated requests
#   tests/sanitize/sanitize.sh asan|tsan all
#
# Ends with a status other than 0 if a test fails or a sanitizer reports anything; what it reports
# stands in build/<kind>/reports. SEED is the seed of the random loads.
set -euo pipefail
cd "$(dirname "$0")/../.."

kind=${1:-} part=${2:-}
usage() { sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[[ $kind == asan || $kind == tsan ]] || usage
shift 2 || usage

seed=${SEED:-1}
python=$PWD/.venv/bin/python
build=build/$kind
reports=$PWD/$build/reports
lists=$PWD/tests/sanitize
runtime=$(g++ -print-file-name="lib$kind.so")

# TSan sees locks and atomics only in code that it instrumented: accesses of other libraries, which
# it would see where they call libc, are left out, or every hand-over inside them would be a race.
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
export LSAN_OPTIONS="suppressions=$lists/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export TSAN_OPTIONS="suppressions=$lists/tsan.supp:ignore_noninstrumented_modules=1:second_deadlock_stack=1"

# Shows what was reported, also when the reporting program ended the run.
finish() {
  local status=$?
  if compgen -G "$reports/*" >/dev/null; then
    cat "$reports"/* >&2
    echo "$kind: reports in $build/reports" >&2
    status=1
  fi
  exit "$status"
}
trap finish EXIT

rm -rf "$reports"
mkdir -p "$reports"

build() {
  local cmake=(nice "$PWD/.venv/bin/cmake")
  if [[ ! -f $build/build.ninja ]]; then
    "${cmake[@]}" --preset "$kind" -DPython_EXECUTABLE="$python" \
      -DCMAKE_MAKE_PROGRAM="$PWD/.venv/bin/ninja" >/dev/null
  fi
  "${cmake[@]}" --build "$build" --target "$@" -- --quiet
}

# The models of the tests, made by a Python without a sanitizer.
models() {
  PYTHONPATH=tests:tests/tiny "$python" -c '
from core.conftest import MODEL
from support.endless import endless_model
from support.tiny import TinyOptions, tiny_engine_model
print(tiny_engine_model("nllb", MODEL))
print(tiny_engine_model("nllb"))
print(endless_model())
print(tiny_engine_model("nllb", TinyOptions(d_model=512)))  # so wide that threads help with steps
'
}

# A prepared model with a tokenizer, in the folder that is named.
text_model() {
  rm -rf "$1"
  "${python%/*}/ct2-prepare" demo --model-repository "$1" >/dev/null
}

# From here on reports go into files, away from the output of the tests.
keep_reports() {
  ASAN_OPTIONS+=":log_path=$reports/log"
  UBSAN_OPTIONS+=":log_path=$reports/log"
  TSAN_OPTIONS+=":log_path=$reports/log"
}

# The mistakes that the sanitizer is to find, and a word of its report on each.
run_canary() {
  build canary
  local mistakes="use-after-free:heap-use-after-free overflow:heap-buffer-overflow"
  mistakes+=" undefined:signed.integer.overflow leak:detected.memory.leaks"
  if [[ $kind == tsan ]]; then mistakes="race:data.race"; fi
  local mistake
  for mistake in $mistakes; do
    if "$build/tests/native/canary" "${mistake%%:*}" 2>"$build/canary.log"; then
      echo "$kind did not end the program at ${mistake%%:*}" >&2
      return 1
    fi
    grep -q "${mistake#*:}" "$build/canary.log" || { cat "$build/canary.log" >&2; return 1; }
  done
  echo "$kind finds ${mistakes}"
}

run_native() {
  keep_reports
  build pool_stress backend_stress stream_stress out_of_memory exhausted_backend hand_over \
    list_packing
  local directories
  mapfile -t directories < <(models)
  timeout 1800 nice "$build/tests/native/pool_stress" "${1:-60}" "$seed" "${directories[@]}"
  timeout 1800 nice "$build/tests/native/backend_stress" "${1:-60}" "$seed" "${directories[0]}"
  text_model "$build/text_model"
  timeout 1800 nice "$build/tests/native/stream_stress" "${1:-60}" "$seed" "$build/text_model/demo"
  timeout 1800 nice "$build/tests/native/out_of_memory" "${directories[0]}"
  timeout 1800 nice "$build/tests/native/exhausted_backend" "${directories[0]}"
  timeout 1800 nice "$build/tests/native/hand_over" 40 "$seed" "${directories[2]}"
  timeout 1800 nice "$build/tests/native/list_packing"
  if [[ $kind == tsan ]]; then return; fi  # which cannot follow the fibers of the emulated GPU
  build lost_device two_gpus
  mkdir -p "$build/cuda"
  ln -sf "$PWD/$build/backend/libct2triton_emulated_gpu.so" "$build/cuda/libcuda.so.1"
  CT2_TRITON_EMULATED_GPU_FAULT=40,700 emulated lost_device "${directories[1]}"
  CT2_TRITON_EMULATED_GPUS=2 emulated two_gpus "${directories[2]}"
}

# ASan warns of every use of fibers, which a log would show as a report: these programs have none,
# and what is found ends the program.
emulated() {
  ASAN_OPTIONS=${ASAN_OPTIONS%%:log_path=*} CT2_TRITON_GPU=emulated \
    LD_LIBRARY_PATH=$PWD/$build/backend:$PWD/$build/cuda \
    timeout 1800 nice "$build/tests/native/$1" "$2"
}

run_core() {
  keep_reports
  build _core
  models >/dev/null
  # The search for leaks itself ended by a signal once ("Tracer caught signal 11"), at the end of a
  # Python that had loaded PyTorch and others: it is left to the programs of tests/native.
  ASAN_OPTIONS=${ASAN_OPTIONS/detect_leaks=1/detect_leaks=0} \
    CT2_TRITON_CORE=$(compgen -G "$PWD/$build/backend/_core.*.so") \
    LD_PRELOAD="$runtime $(g++ -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc \
    timeout 3600 nice "$python" -m pytest -p no:cacheprovider -q -m 'not plain_process' \
    "${@:-tests/core}"
}

run_server() {
  keep_reports
  build triton_ctranslate2 server_preload
  models >/dev/null
  local tests=("$@")
  if [[ $# -eq 0 ]]; then
    tests=(tests/server/test_mixed_load.py tests/server/test_hostile_inputs.py
           tests/server/test_hostile_options.py tests/server/test_model_files.py
           tests/reliability/test_fuzz.py)
    export CT2_TRITON_LOAD_SECONDS=${CT2_TRITON_LOAD_SECONDS:-60}
  fi
  CT2_TRITON_SEED=$seed \
    CT2_TRITON_PLUGIN=$PWD/$build/backend/libtriton_ctranslate2.so \
    CT2_TRITON_SERVER_PRELOAD="$runtime $PWD/$build/tests/native/libserver_preload.so" \
    timeout 3600 nice "$python" -m pytest -p no:cacheprovider -q -s "${tests[@]}"
}

case $part in
  canary | native | core | server) "run_$part" "$@" ;;
  all) for part in canary native core server; do "run_$part"; done ;;
  *) usage ;;
esac
