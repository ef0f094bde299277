# SPDX-License-Identifier: Apache-2.0
"""What importing the client may cost."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "transformers", "ctranslate2", "grpc", "tritonclient", "numpy", "tokenizers")


def test_importing_the_client_imports_nothing_heavy() -> None:
    code = (
        "import sys, ct2_triton.client, ct2_triton.translate.cli\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert result.stdout.strip() == ""


def test_the_client_imports_where_processes_do_not_fork() -> None:
    code = (
        "import os\ndel os.fork, os.register_at_fork\n"
        "import ct2_triton.client.connection, ct2_triton.client.sync_client"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
