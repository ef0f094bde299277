# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that scrapes a server of the tests."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "deploy" / "prometheus" / "prometheus.yml"
_UNPACKED = ROOT / ".venvs" / "prometheus" / "usr" / "bin"


def binary(name: str) -> str | None:
    """`prometheus` or `promtool`: that of the set-up, else one on PATH; None: there is none."""
    unpacked = _UNPACKED / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


MISSING = "Debian's package prometheus could not be fetched by `make test`"


def quick(rules: str) -> str:
    """Alerts that look back seconds instead of minutes, and wait a second instead of minutes."""
    rules = re.sub(r"\[1d\] offset \w+", "[60s] offset 10s", rules)
    rules = re.sub(r"\[\d+[mh]\]", "[10s]", rules)
    return re.sub(r"for: \w+", "for: 1s", rules)


class Prometheus:
    """One that scrapes every second, with the shipped configuration otherwise."""

    def __init__(self, folder: Path, target: str) -> None:
        """Writes its files.

        Args:
            folder: Where configuration and data go.
            target: Host and port of the metrics to scrape.
        """
        self._folder = folder
        config = CONFIG.read_text(encoding="utf-8")
        config = config.replace("15s", "1s").replace("localhost:8002", target)
        (folder / "prometheus.yml").write_text(config, encoding="utf-8")
        rules = CONFIG.with_name("alerts.yml").read_text(encoding="utf-8")
        (folder / "alerts.yml").write_text(quick(rules), encoding="utf-8")

    def __enter__(self) -> Prometheus:
        """Starts it, and waits until it is ready."""
        program = binary("prometheus")
        assert program is not None
        self._url = f"http://127.0.0.1:{free_port()}"
        self._process = subprocess.Popen(
            [
                program,
                f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={self._url.removeprefix('http://')}",
            ],
            stderr=(self._folder / "log").open("w"),
        )
        self._wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops it."""
        self._process.terminate()
        self._process.wait()

    def _wait_until_ready(self) -> None:
        for _ in range(600):
            assert self._process.poll() is None, (self._folder / "log").read_text()
            try:
                urllib.request.urlopen(f"{self._url}/-/ready").close()  # noqa: S310
            except urllib.error.URLError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError("Prometheus is not ready")

    def query(self, promql: str) -> list[dict[str, Any]]:
        """Asks; gives the series that have a finite value now."""
        address = f"{self._url}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
        with urllib.request.urlopen(address) as page:  # noqa: S310
            series = json.load(page)["data"]["result"]
        return [each for each in series if math.isfinite(float(each["value"][1]))]

    def fired(self) -> set[tuple[str, str]]:
        """Alerts that have fired so far, with their models."""
        series = self.query('max_over_time(ALERTS{alertstate="firing"}[1h])')
        labels = [each["metric"] for each in series]
        return {(each["alertname"], each.get("model", "")) for each in labels}
