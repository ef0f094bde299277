# SPDX-License-Identifier: Apache-2.0
"""Writes the Grafana dashboard from the table of metrics.

python tools/dashboard.py            write deploy/grafana/ct2-triton.json
python tools/dashboard.py --check    fail when it is out of date
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated_file import write_or_check

FILE = Path(__file__).resolve().parents[1] / "deploy" / "grafana" / "ct2-triton.json"

MINE = '{model=~"$model"}'
_UNITS = {"seconds": "s", "bytes": "bytes", "part": "percentunit"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        title: Its title.
        unit: `seconds`, `bytes`, `part` (0 to 1), or what is counted.
        queries: PromQL by legend.
    """

    title: str
    unit: str
    queries: dict[str, str]


def rate(metric: str, by: str = "model", more: str = "") -> str:
    """Return the rate of a counter per second, summed over all labels except `by`."""
    labels = MINE.replace("}", f", {more}}}") if more else MINE
    return f"sum by ({by}) (rate({metric}{labels}[$__rate_interval]))"


def part(of: str, among: str) -> str:
    """One rate by another."""
    return f"{of} / {among}"


def quantiles(metric: str) -> dict[str, str]:
    """Return the median and the 95th percentile of a histogram."""
    return {
        f"{{{{model}}}} {name}": f"histogram_quantile({q}, {rate(metric + '_bucket', 'le, model')})"
        for name, q in (("50 %", 0.5), ("95 %", 0.95))
    }


def gauge(metric: str) -> dict[str, str]:
    """Return the value of a gauge."""
    return {"{{model}} {{version}}": metric + MINE}


def by_model(query: str) -> dict[str, str]:
    """One line for each model."""
    return {"{{model}}": query}


_SUCCESSES = rate("nv_inference_request_success")
_ROWS = rate("ct2_run_rows_total")
_ANSWERS = rate("ct2_rows_total", more='finish=~"stop|length|cut"')

SECTIONS: dict[str, list[Panel]] = {
    "Traffic": [
        Panel(
            "Requests a second",
            "requests",
            {
                "{{model}} {{version}} {{result}}": rate(
                    "ct2_requests_total", "model, version, result"
                )
            },
        ),
        Panel(
            "Rows a second",
            "rows",
            {"{{model}} {{finish}}": rate("ct2_rows_total", "model, finish")},
        ),
        Panel(
            "Tokens a second",
            "tokens",
            {
                "{{model}} source": rate("ct2_source_tokens_total"),
                "{{model}} generated": rate("ct2_generated_tokens_total"),
            },
        ),
    ],
    "Latency": [
        Panel("Time in the queue", "seconds", quantiles("ct2_queue_seconds")),
        Panel("Time to the first token", "seconds", quantiles("ct2_first_token_seconds")),
        Panel("Time between two tokens", "seconds", quantiles("ct2_token_seconds")),
        Panel("Longest such time", "seconds", quantiles("ct2_longest_token_gap_seconds")),
        Panel(
            "Queue against compute, a request",
            "seconds",
            {
                "{{model}} queue": part(
                    rate("nv_inference_queue_duration_us"), f"{_SUCCESSES} / 1e6"
                ),
                "{{model}} compute": part(
                    rate("nv_inference_compute_infer_duration_us"), f"{_SUCCESSES} / 1e6"
                ),
            },
        ),
        Panel("Rows that wait", "rows", gauge("ct2_waiting_rows")),
        Panel(
            "Queue, how full",
            "part",
            by_model(f"max by (model) (ct2_waiting_rows{MINE} / ct2_most_waiting_rows{MINE})"),
        ),
    ],
    "Batches": [
        Panel(
            "Rows a step of the loops",
            "rows",
            by_model(part(rate("ct2_loop_step_rows_total"), rate("ct2_loop_steps_total"))),
        ),
        Panel(
            "Time of a step, of an encoding",
            "seconds",
            {
                "{{model}} step": part(
                    rate("ct2_loop_step_seconds_total"), rate("ct2_loop_steps_total")
                ),
                "{{model}} encoding": part(
                    rate("ct2_encode_seconds_total"), rate("ct2_encodes_total")
                ),
            },
        ),
        Panel(
            "Parts of a step that other threads computed",
            "parts",
            by_model(part(rate("ct2_loop_helped_parts_total"), rate("ct2_loop_steps_total"))),
        ),
        Panel("Rows being decoded", "rows", gauge("ct2_decoding_rows")),
        Panel(
            "Tokens a step, tokens an encoding",
            "tokens",
            {
                "{{model}} step": part(
                    rate("ct2_loop_step_tokens_total"), rate("ct2_loop_steps_total")
                ),
                "{{model}} encoding": part(
                    rate("ct2_encoded_tokens_total"), rate("ct2_encodes_total")
                ),
            },
        ),
        Panel(
            "Rows that joined, shared or met their equal",
            "part",
            {
                "{{model}} joined a running loop": part(rate("ct2_loop_joined_rows_total"), _ROWS),
                "{{model}} shared an encoding": part(rate("ct2_shared_encodings_total"), _ROWS),
                "{{model}} equal to another": part(rate("ct2_equal_rows_total"), _ROWS),
            },
        ),
        Panel(
            "GPU: passes, and choices on the host",
            "1/s",
            {
                "{{model}} passes": rate("ct2_gpu_passes_total"),
                "{{model}} passes ahead": rate("ct2_gpu_passes_ahead_total"),
                "{{model}} choices on the host": rate("ct2_gpu_host_choices_total"),
            },
        ),
        Panel("GPU: pages of keys and values", "bytes", gauge("ct2_gpu_cache_bytes")),
        Panel(
            "Drafts: tokens kept, of those tried",
            "part",
            by_model(
                part(rate("ct2_loop_draft_tokens_kept_total"), rate("ct2_loop_draft_tokens_total"))
            ),
        ),
        Panel(
            "Sources an encoding; steps a call or group",
            "rows, steps",
            {
                "{{model}} sources": part(
                    rate("ct2_encoded_rows_total"), rate("ct2_encodes_total")
                ),
                "{{model}} steps": part(rate("ct2_call_steps_total"), rate("ct2_calls_total")),
            },
        ),
        Panel(
            "Padding, of the source tokens",
            "part",
            by_model(part(rate("ct2_padding_tokens_total"), rate("ct2_source_tokens_total"))),
        ),
        Panel(
            "Rows in calls instead of a loop",
            "part",
            by_model(part(rate("ct2_run_rows_total", more='decoding="call"'), _ROWS)),
        ),
        Panel(
            "Rows with the vocabulary map",
            "part",
            by_model(
                part(rate("ct2_vmap_rows_total", more='vmap="used"'), rate("ct2_vmap_rows_total"))
            ),
        ),
    ],
    "Text": [
        Panel(
            "Unknown tokens",
            "part",
            {
                "{{model}} in the sources": part(
                    rate("ct2_unknown_source_tokens_total"), rate("ct2_source_tokens_total")
                ),
                "{{model}} in the answers": part(
                    rate("ct2_unknown_generated_tokens_total"), rate("ct2_generated_tokens_total")
                ),
            },
        ),
        Panel(
            "Answers that ended at a limit",
            "part",
            by_model(part(rate("ct2_rows_total", more='finish=~"length|cut"'), _ANSWERS)),
        ),
        Panel(
            "Length of the answers by the sources'",
            "tokens a token",
            by_model(part(rate("ct2_generated_tokens_total"), rate("ct2_source_tokens_total"))),
        ),
        Panel(
            "Rows a second by target language",
            "rows",
            {"{{model}} {{target}}": rate("ct2_target_rows_total", "model, target")},
        ),
        Panel(
            "Flagged translations, of those judged",
            "part",
            {
                "{{model}} {{flag}}": part(
                    rate("ct2_quality_flags_total", "model, flag"),
                    f"on (model) group_left () {rate('ct2_quality_rows_total')}",
                )
            },
        ),
        Panel(
            "Rows decoded again because they are flagged, of all",
            "part",
            {
                "{{model}} decoded again": part(
                    rate("ct2_retried_rows_total"), rate("ct2_rows_total")
                ),
                "{{model}} better then": part(
                    rate("ct2_retried_rows_better_total"), rate("ct2_rows_total")
                ),
            },
        ),
        Panel(
            "Tokens a row by target language",
            "tokens",
            {
                "{{model}} {{target}}": part(
                    rate("ct2_target_tokens_total", "model, target"),
                    rate("ct2_target_rows_total", "model, target"),
                )
            },
        ),
    ],
    "Machine": [
        Panel(
            "Part of the decoding threads",
            "part",
            by_model(
                part(rate("ct2_busy_seconds_total"), f"max by (model) (ct2_decoding_threads{MINE})")
            ),
        ),
        Panel(
            "Memory",
            "bytes",
            {
                "{{model}} weights": "ct2_weight_bytes" + MINE,
                "{{model}} keys and values": "ct2_cache_bytes" + MINE,
            },
        ),
        Panel(
            "CTranslate2's model loaded for calls",
            "loads a second",
            by_model(rate("ct2_call_loads_total")),
        ),
        Panel(
            "Decode loops: in use, refused, GPU lost",
            "yes or no",
            {
                "{{model}} in use": "ct2_decodes_in_loop" + MINE,
                "{{model}} refused": "ct2_loop_refused" + MINE,
                "{{model}} GPU lost": "ct2_gpu_lost" + MINE,
            },
        ),
    ],
}


def dashboard(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the dashboard as Grafana reads it.

    Args:
        metrics: What `ct2_triton._core.metrics()` gives: the help of each panel.

    Returns:
        Its JSON.
    """
    help_of = {metric["name"]: metric["help"] for metric in metrics}
    panels: list[dict[str, Any]] = []
    y = 0
    for title, charts in SECTIONS.items():
        panels.append({"type": "row", "title": title, "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}})
        for i, panel in enumerate(charts):
            place = {"x": i % _COLUMNS * _WIDTH, "y": y + 1 + i // _COLUMNS * _HEIGHT}
            panels.append(_chart(panel, {"h": _HEIGHT, "w": _WIDTH, **place}, help_of))
        y += 1 + -(-len(charts) // _COLUMNS) * _HEIGHT
    for number, drawn in enumerate(panels, 1):
        drawn["id"] = number
    return {
        "uid": "ct2-triton",
        "title": "ct2-triton",
        "tags": ["ct2-triton", "triton"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source_variable(), _model_variable()]},
        "panels": panels,
    }


def _chart(panel: Panel, place: dict[str, int], help_of: dict[str, str]) -> dict[str, Any]:
    names = re.findall(r"\bct2_[a-z_]+", " ".join(panel.queries.values()))
    known = dict.fromkeys(re.sub("_bucket$", "", name) for name in names)
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": "\n\n".join(f"{name}: {help_of[name]}" for name in known),
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": _UNITS.get(panel.unit, "short"), "min": 0}},
        "targets": [
            {
                "refId": chr(ord("A") + i),
                "expr": query,
                "legendFormat": legend,
                "datasource": source,
            }
            for i, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "source", "type": "datasource", "query": "prometheus"}


def _model_variable() -> dict[str, Any]:
    return {
        "name": "model",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": "label_values(ct2_requests_total, model)",
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def main(arguments: list[str] | None = None) -> int:
    """Write or check the dashboard; `arguments` are those of the command line."""
    from ct2_triton import _core

    return write_or_check(
        "dashboard.py",
        __doc__,
        FILE,
        lambda: json.dumps(dashboard(_core.metrics()), indent=1) + "\n",
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
