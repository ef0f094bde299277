# SPDX-License-Identifier: Apache-2.0
"""Translates the column `text` of a CSV file: 64 rows at a time, in their order.

python examples/batch_file.py texts.csv translated.csv
"""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import dataclass, field

from ct2_triton.client import Sentence, SyncTranslationClient
from ct2_triton.errors import RequestRejectedError

URL = os.environ.get("CT2_URL", "localhost:8001")
MODEL = os.environ.get("CT2_MODEL", "demo")


@dataclass(frozen=True)
class Row(Sentence):
    """A sentence with its row, which is returned with the translation."""

    cells: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Write the file again, with a column more; return 1 where a row was refused."""
    source, output = sys.argv[1:3]
    refused = 0
    with (
        open(source, encoding="utf-8", newline="") as texts,  # noqa: PTH123
        open(output, "w", encoding="utf-8", newline="") as translated,  # noqa: PTH123
        SyncTranslationClient(URL, MODEL) as client,
    ):
        rows = csv.DictReader(texts)
        writer = csv.DictWriter(translated, [*(rows.fieldnames or []), "german"])
        writer.writeheader()
        sentences = (Row(row["text"], cells=row) for row in rows)
        for item in client.stream(
            sentences, source="en", targets="de", max_in_flight=64, on_error="yield"
        ):
            if isinstance(item.outcome, RequestRejectedError):
                refused += 1
                print(f"row {item.position + 1}: {item.outcome}", file=sys.stderr)
                german = ""
            else:
                german = item.translation.text  # raises errors that this row did not cause
            writer.writerow({**item.sentence.cells, "german": german})
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
