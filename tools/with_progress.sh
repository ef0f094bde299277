#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# with_progress.sh WHAT COMMAND...: run a command that prints little, and say every 10 seconds that it still
# runs. Ends with its status.
set -euo pipefail

what=$1
shift
echo "$what ..."
ticker() {
  exec {never}<> <(:) 9>&-  # no process may outlive this one: it would hold make's output and lock open
  while ! read -rt "${PROGRESS_PERIOD_S:-10}" -u "$never"; do echo "$what: $SECONDS s so far"; done
}
ticker &
trap 'kill "$!" 2>/dev/null || true' EXIT
"$@"
echo "$what: done in $SECONDS s"
