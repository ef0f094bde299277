# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics of a web server of this package."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def web_metrics(port: int) -> dict[str, float]:
    """The lines at a port, by name and the values of their labels, sorted by label: `name a b`."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        families = text_string_to_metric_families(page.read().decode())
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }
