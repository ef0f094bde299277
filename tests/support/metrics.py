# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics of a server."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.serve import TritonServer

_PUBLICATIONS = "ct2_publications_total"
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass
class Metrics:
    """The lines of one model at /metrics.

    Attributes:
        values: By name and the values of the labels beside model and version, in their order.
    """

    values: dict[tuple[str, ...], float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """The only line of this name."""
        return self.values[(name,)]

    def by(self, name: str) -> dict[str, float]:
        """The lines of this name by their further label; those that are not 0."""
        lines = {key[1]: value for key, value in self.values.items() if key[0] == name}
        return {label: value for label, value in lines.items() if value}


def scrape(server: TritonServer, model: str, version: str = "1") -> Metrics:
    """Reads what the backend shows of a model version; nothing where it is not loaded."""
    with urllib.request.urlopen(server.metrics_url) as page:  # noqa: S310
        text = page.read().decode()
    found = Metrics()
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or not match[1].startswith("ct2_"):
            continue
        labels = dict(_LABEL.findall(match[2]))
        if (labels.pop("model"), labels.pop("version")) == (model, version):
            found.values[(match[1], *labels.values())] = float(match[3])
    return found


def fresh(server: TritonServer, model: str, version: str = "1") -> Metrics:
    """The same, with all that was counted before the call: waits for two publications."""

    def publications() -> float | None:
        return scrape(server, model, version).values.get((_PUBLICATIONS,))

    start = publications()
    if start is not None:  # else it is not loaded; 0: it has just been
        wait_until(lambda: (publications() or 0.0) >= start + 2)
    found = scrape(server, model, version)
    found.values.pop((_PUBLICATIONS,), None)
    return found


def still(read: Callable[[], Metrics]) -> Metrics:
    """What `read` gives, such as `fresh`, once it gives the same twice."""
    before = read()
    while (now := read()) != before:
        before = now
    return now
