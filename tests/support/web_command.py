# SPDX-License-Identifier: Apache-2.0
"""A command that serves HTTP and says where in its first line."""

from __future__ import annotations

import signal
import subprocess


class WebCommand:
    """One that runs (ct2-live, ct2-gateway), and its address."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout
        line = process.stdout.readline()
        self.url = line.split()[1].rstrip("/") if line else ""

    def stop(self) -> int:
        """Ends it, and gives its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(600)
