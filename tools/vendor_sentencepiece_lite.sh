#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes third_party/sentencepiece_lite again: SentencePiece Lite and darts-clone from the source
# distribution of the Python package sentencepiece, FlatBuffers from Debian 12's packages.
#
#   tools/vendor_sentencepiece_lite.sh [folder]    default: third_party/sentencepiece_lite
#
# README.md of that folder says what is there. A source whose SHA-256 is not the one below is
# refused. Needs pip, apt-get, dpkg and the usual indexes of both; nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

output=$(realpath -m "${1:-third_party/sentencepiece_lite}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

version=0.2.3
sdist_sha256=21618ad31f0453a1ebf5ec58defed99758d54af0b670546ecac639ddd8b86fbd
# Those of FlatBuffers' headers that sentencepiece_lite.cc and its generated header reach.
headers=(allocator array base buffer buffer_ref default_allocator detached_buffer
         flatbuffer_builder flatbuffers stl_emulation string struct table vector vector_downward
         verifier)

cd "$scratch"
"${PYTHON:-python3}" -m pip --disable-pip-version-check download --quiet --no-deps \
  --no-binary sentencepiece "sentencepiece==$version"
echo "$sdist_sha256  sentencepiece-$version.tar.gz" | sha256sum --quiet --check
tar xzf "sentencepiece-$version.tar.gz"
apt-get download --quiet flatbuffers-compiler libflatbuffers-dev libflatbuffers2 >/dev/null
for package in *.deb; do dpkg -x "$package" debian; done

source=sentencepiece-$version/sentencepiece
mkdir -p "$output/flatbuffers"
cp "$source/lite/sentencepiece_lite.cc" "$source/lite/sentencepiece_lite.h" "$output"
cp "$source/third_party/darts_clone/darts.h" "$output"
cp "$source/LICENSE" "$output/LICENSE"
cp "$source/third_party/darts_clone/LICENSE" "$output/LICENSE.darts-clone"
cp debian/usr/share/doc/libflatbuffers-dev/copyright "$output/LICENSE.flatbuffers"
for header in "${headers[@]}"; do
  cp "debian/usr/include/flatbuffers/$header.h" "$output/flatbuffers"
done
LD_LIBRARY_PATH=$(dirname debian/usr/lib/*/libflatbuffers.so.2) \
  debian/usr/bin/flatc --cpp --gen-object-api -o "$output" "$source/lite/sentencepiece_lite.fbs"
# The one change: FlatBuffers 2.0.8 has no Vector::empty.
sed -i 's/!spec_->precompiled_charsmap()->empty()/spec_->precompiled_charsmap()->size() != 0/' \
  "$output/sentencepiece_lite.cc"

cd "$output"
find . -type f ! -name README.md ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort |
  xargs sha256sum > SHA256SUMS
