# SPDX-License-Identifier: Apache-2.0
"""Writes docs/metrics.md from the table that the backend itself publishes.

python tools/metrics_doc.py            write the page
python tools/metrics_doc.py --check    fail when the page is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from generated_file import write_or_check

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"

_HEAD = """\
<!-- Written by tools/metrics_doc.py from the table in backend/src/metrics/metric_table.cc. -->
# Metrics

Triton publishes these metrics beside its own, in Prometheus' text format, at `/metrics` of its
metrics port:

```sh
curl localhost:8002/metrics
```

Every series has the labels `model` and `version`. It exists from the load of the model, at zero,
and is removed when the model is unloaded; a reload in place keeps its values. Series of a target
language appear with the first row into it; languages that the prepared model does not list are
counted as `other`.

Values are published four times a second, so a page may be a quarter of a second old. Histograms are
always exact; they need a server that has them in its C API (2.49 or later).

Models that use the same files share weights, decode loops and thread time. Each of them shows the
whole value from its own load on.
"""

QUOTIENTS = {
    "tokens per second": "sum by (model) (rate(ct2_generated_tokens_total[1m]))",
    "rows per decode step": ("rate(ct2_loop_step_rows_total[1m]) / rate(ct2_loop_steps_total[1m])"),
    "share of the decoding threads that a model uses": (
        "rate(ct2_busy_seconds_total[1m]) / ct2_decoding_threads"
    ),
    "time in the queue, p95": (
        "histogram_quantile(0.95, sum by (le, model) (rate(ct2_queue_seconds_bucket[5m])))"
    ),
    "share of rows that ended at their limit": (
        'sum by (model) (rate(ct2_rows_total{finish="length"}[5m]))'
        " / sum by (model) (rate(ct2_rows_total[5m]))"
    ),
}


def page(metrics: list[dict[str, Any]], bounds: list[float]) -> str:
    """Return the whole page.

    Args:
        metrics: What `ct2_triton._core.metrics()` gives.
        bounds: What `ct2_triton._core.histogram_bounds()` gives, in seconds.

    Returns:
        Markdown text.
    """
    buckets = ", ".join(f"{bound:g}" for bound in bounds)
    lines = [_HEAD, f"Buckets of the histograms, in seconds: {buckets}.", ""]
    lines += ["| name | kind | further label | meaning |", "|---|---|---|---|"]
    lines += [_row(metric) for metric in metrics]
    lines += ["", "## Useful queries", "", "| question | PromQL |", "|---|---|"]
    lines += [f"| {question} | `{query}` |" for question, query in QUOTIENTS.items()]
    return "\n".join(lines) + "\n"


def _row(metric: dict[str, Any]) -> str:
    label = ""
    if metric["label"]:
        values = ", ".join(f"`{value}`" for value in metric["label_values"])
        label = f"`{metric['label']}`: {values or 'language code'}"
    return f"| `{metric['name']}` | {metric['kind']} | {label} | {metric['help']} |"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; `arguments` are those of the command line."""
    from ct2_triton import _core

    return write_or_check(
        "metrics_doc.py",
        __doc__,
        PAGE,
        lambda: page(_core.metrics(), _core.histogram_bounds()),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
