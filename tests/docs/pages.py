# SPDX-License-Identifier: Apache-2.0
"""A page of the documentation as one session of a shell.

The blocks ```sh and ```python of a page run in order, in one folder, on ports of their own. A block
```text after one of them is its expected output: `...` stands for the rest of a line, and for any
lines where it is a line of its own. Blocks ```bash are not run; test_pages.py says why.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
# The ports of the commands, with the variable that sets each.
_PORTS = {
    "8000": "CT2_SERVE_HTTP_PORT",
    "8001": "CT2_SERVE_GRPC_PORT",
    "8002": "CT2_SERVE_METRICS_PORT",
    "5000": "CT2_GATEWAY_PORT",
    "8090": "CT2_LIVE_PORT",
}
# A command that stays in the foreground, and what it prints once it can be used.
_STAYS = {
    "ct2-serve ": "metrics  http",
    "ct2-gateway ": "ct2-gateway: http",
    "ct2-live --model": "ct2-live: http",
}
_RUN_PYTHON = """
import ast, asyncio, inspect, sys
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
names = {"__name__": "__main__"}
result = eval(code, names)
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


@dataclass
class Block:
    """A block of a page that runs, and the output that the page shows."""

    language: str
    code: str
    expected: str | None = None
    output: str = ""
    errors: str = ""


def blocks(page: Path) -> list[Block]:
    """Read the blocks of a page that run."""
    found: list[Block] = []
    text = page.read_text(encoding="utf-8")
    previous = None
    for language, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language in ("sh", "python"):
            found.append(Block(language, code))
        elif language == "text" and previous in ("sh", "python"):
            found[-1].expected = code
        previous = language
    return found


def run(page: Path, folder: Path) -> list[Block]:
    """Run the blocks of a page; the servers that it starts end with it.

    Args:
        page: The page.
        folder: The folder to work in.

    Returns:
        The blocks, with what they printed.
    """
    ports = {port: free_port() for port in _PORTS}
    session = blocks(page)
    logs = folder / ".session"
    logs.mkdir()
    end = "trap 'status=$?; kill $(jobs -p) 2>/dev/null || :; wait || :; exit $status' EXIT"
    script = ["set -euo pipefail", "server=", end]
    for number, block in enumerate(session):
        code = _with_ports(block.code, ports)
        if block.language == "python":
            (logs / f"{number}.py").write_text(code, encoding="utf-8")
            code = f"python .session/run.py .session/{number}.py\n"
        script += _step(code, f".session/{number}.out", f".session/{number}.err")
    (logs / "run.py").write_text(_RUN_PYTHON, encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CT2_URL": f"localhost:{ports['8001']}",
        **{variable: str(ports[port]) for port, variable in _PORTS.items()},
    }
    status, said = _run_script("\n".join(script), folder, environment)
    for number, block in enumerate(session):
        for name, ending in (("output", "out"), ("errors", "err")):
            file = logs / f"{number}.{ending}"
            if file.exists():
                text = file.read_text(encoding="utf-8")
                for port, free in ports.items():
                    text = text.replace(f":{free}", f":{port}")
                setattr(block, name, text)
    last = [block for block in session if block.output or block.errors][-1:]
    assert status == 0, f"{said}\nlast: {last}"
    return session


def _run_script(script: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run it in a session of its own, so that no server outlives a test that is ended."""
    shell = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said = shell.communicate(timeout=800)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    return shell.returncode, said


def expected_pattern(text: str) -> str:
    """Make the pattern of an expected output: `...` stands for what a page leaves out."""
    pattern = re.escape(text)
    pattern = re.sub(r"^\\\.\\\.\\\.\n", r"(?:.*\n)*", pattern.replace("\\\n", "\n"), flags=re.M)
    return pattern.replace(r"\.\.\.", ".*")


def _with_ports(code: str, ports: dict[str, int]) -> str:
    for port, free in ports.items():
        code = re.sub(rf"\b(localhost|127\.0\.0\.1):{port}\b", rf"\1:{free}", code)
    return code


def _step(code: str, output: str, errors: str) -> list[str]:
    """One block of the script: in the background where it stays, and then until it is ready."""
    lines = ["{", code.rstrip("\n"), "}" + f" >{output} 2>{errors}"]
    ready = [said for start, said in _STAYS.items() if code.startswith(start) and _stays(code)]
    if not ready:
        return lines
    stop = 'if [ -n "$server" ]; then kill $server; wait $server || true; fi'
    return [
        stop if code.startswith("ct2-serve ") else "",
        f"{code.strip()} >{output} 2>{errors} &",
        "server=$!" if code.startswith("ct2-serve ") else "",
        f"until grep -q '{ready[0]}' {output} {errors}; do sleep 0.1; kill -0 $!; done",
    ]


def _stays(code: str) -> bool:
    """Whether the block is one command that serves until it is interrupted."""
    line = code.strip()
    return "\n" not in line and not re.search(r"&$|--check|--stdio|--install-backend|\|", line)
