#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint of the model hub from the download to a page of results: see real_model.py --help.
#
#   benchmarks/real_model.sh facebook/nllb-200-distilled-600M --from eng_Latn --to deu_Latn \
#     --text news.en --reference news.de
set -euo pipefail
make -C "$(dirname "$0")/.." --silent install >&2
exec "$(dirname "$0")/../.venv/bin/python" "$(dirname "$0")/real_model.py" "$@"
