#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets of tests/fuzz into build/fuzz, replays their corpus and fuzzes.
#
#   tests/fuzz/fuzz.sh [--seconds N] [target ...]  N seconds for each target, 60 unless told: other
#                                                  inputs each time
#   tests/fuzz/fuzz.sh --made N [target ...]       N inputs made of the corpus, which SEED decides: the
#                                                  same ones each time
#   tests/fuzz/fuzz.sh --merge [target ...]        takes what covers more into the corpus
#
# The corpus is one archive, tests/fuzz/corpus.tar.xz, unpacked into build/fuzz/kept; it runs first.
# Ends with a status other than 0 at the first broken property, crash, leak or hang; the input then
# lies in build/fuzz/artifacts: build/fuzz/tests/fuzz/<target> <input> runs it again. SEED is 1
# unless told. CLANG names the compiler; without one, root gets Debian's.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60 made=0 merge=false seed=${SEED:-1}
while [[ ${1:-} == --* ]]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --made) made=$2 seconds=0; shift 2 ;;
    --merge) merge=true; shift ;;
    *) sed -n '3,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
targets=("$@")
[[ $# -gt 0 ]] || targets=(fuzz_config fuzz_model_file fuzz_parameters fuzz_rows fuzz_tokenizer fuzz_request fuzz_text)

bin=$PWD/.venv/bin
build=build/fuzz
found=$build/corpus
artifacts=$build/artifacts
archive=tests/fuzz/corpus.tar.xz
kept=$build/kept/corpus

find_clang() {
  local name
  for name in ${CLANG:-} clang++ clang++-{21..14}; do
    if command -v "$name" >/dev/null && echo 'extern "C" int LLVMFuzzerTestOneInput(const char*,
      unsigned long) { return 0; }' | "$name" -x c++ -fsanitize=fuzzer,address - -o /dev/null \
      2>/dev/null; then
      echo "$name"
      return
    fi
  done
  return 1
}

if ! clang=$(find_clang); then
  packages="clang-14 libclang-rt-14-dev"
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "fuzzing needs Clang with its runtimes: apt-get install $packages" >&2
    exit 1
  fi
  echo "installing Debian packages: $packages"
  export DEBIAN_FRONTEND=noninteractive
  mkdir -p build
  exec 9>build/.apt.lock; flock 9  # as tests/support/debian_packages.py
  apt-get update -qq
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends $packages >/dev/null
  exec 9>&-
  clang=$(find_clang)
fi

if [[ ! -f $build/build.ninja ]]; then
  "$bin/cmake" --preset fuzz -DCMAKE_CXX_COMPILER="$clang" -DPython_EXECUTABLE="$bin/python" \
    -DCMAKE_MAKE_PROGRAM="$bin/ninja" >/dev/null
fi
nice "$bin/cmake" --build "$build" --target "${targets[@]}" -- --quiet

CT2_TRITON_FUZZ_MODEL=$(PYTHONPATH=tests:tests/tiny "$bin/python" -c '
from support.tiny import tiny_engine_model
print(tiny_engine_model("nllb"))')
export CT2_TRITON_FUZZ_MODEL
# A copy: what is fuzzed does not depend on the working tree.
rm -rf "$build/text_model"
"$bin/ct2-prepare" demo --model-repository "$build/text_model" >/dev/null
export CT2_TRITON_FUZZ_TEXT_MODEL=$build/text_model/demo
{
  cat tests/fuzz/config.dict
  "$bin/python" -c '
from ct2_triton import _core
for parameter in _core.parameters(): print("\"\\\"" + parameter["name"] + "\\\"\"")'
} >"$build/config.dict"
mkdir -p "$artifacts"
rm -rf "$build/kept"
mkdir -p "$build/kept"
tar -C "$build/kept" -xf "$archive"

for target in "${targets[@]}"; do
  seeds=("$kept/$target")
  options=(-artifact_prefix="$artifacts/" -timeout=60 -print_final_stats=1 -verbosity=0 -print_funcs=0)
  if [[ $target == fuzz_config ]]; then
    seeds+=(tests/core/data)
    options+=(-dict="$build/config.dict")
  fi
  mkdir -p "$found/$target" "$kept/$target"
  if $merge; then
    "$build/tests/fuzz/$target" "${options[@]}" -use_counters=0 -merge=1 "$kept/$target" \
      "$found/$target"
    continue
  fi
  echo "$target: corpus of $(find "${seeds[@]}" -type f | wc -l), $made made of it, seed $seed"
  replayed=("${seeds[@]}")
  if [[ $made -gt 0 ]]; then
    "$bin/python" tests/fuzz/made_inputs.py "$kept/$target" "$build/kept/made/$target" "$made" "$seed"
    replayed+=("$build/kept/made/$target")
  fi
  nice -n 10 "$build/tests/fuzz/$target" "${options[@]}" -seed="$seed" -runs=0 "${replayed[@]}"
  if [[ $seconds -gt 0 ]]; then
    nice -n 10 "$build/tests/fuzz/$target" "${options[@]}" -max_total_time="$seconds" \
      "$found/$target" "${seeds[@]}"
  fi
done

if $merge; then
  # The same bytes for the same inputs, whoever packs them.
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$build/kept" -cf - corpus |
    xz -9e >"$archive"
fi
