# SPDX-License-Identifier: Apache-2.0
"""Writes backend/abi/triton_functions.md: which release of Triton brought each function we use.

python tools/triton_functions.py CORE     from a git clone of triton-inference-server/core

The clone needs the branches of all releases (r20.11 to the newest).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ABI = Path(__file__).resolve().parents[1] / "backend" / "abi"
PAGE = ABI / "triton_functions.md"
_HEADERS = ("tritonbackend.h", "tritonserver.h")

_HEAD = """\
<!-- Written by tools/triton_functions.py from the headers of all releases. -->
# Functions of Triton that the backend uses

`triton_c_api.h` declares these functions. Triton calls those that the backend implements; it
finds the others in the server's process. What came after 23.03 is a weak symbol, used where the
server has it. The types of the parameters have not changed from that release to {newest}.

The backend API is 1.19 since 24.03 and the server API 1.34 since 24.08; 25.x and 26.x change
neither, and remove and change nothing that is used here. `TRITONBACKEND_ModelInstanceReady` is an
entry point that servers call since {ready}, when a client asks whether the model is ready.

| function | since | on older servers |
|---|---|---|
"""


def declared() -> dict[str, bool]:
    """Return the functions that our header declares, and whether each may be missing."""
    text = re.sub(r"//[^\n]*", "", (ABI / "triton_c_api.h").read_text(encoding="utf-8"))
    found = re.findall(r"\b(TRITON(?:SERVER|BACKEND)_[A-Z]\w+)\(([^;]*);", text)
    return {name: "__attribute__((weak))" in rest for name, rest in found}


def releases(core: Path) -> dict[str, str]:
    """Return the text of the headers of each release, from the oldest."""
    refs = _git(core, "for-each-ref", "--format=%(refname)").split()
    by_name = {m[1]: ref for ref in refs if (m := re.search(r"/r(2\d\.\d\d)$", ref))}
    return {
        name: "".join(_git(core, "show", f"{ref}:include/triton/core/{one}") for one in _HEADERS)
        for name, ref in sorted(by_name.items())
    }


def page(core: Path) -> str:
    """Return the whole page."""
    headers = releases(core)
    rows = []
    for name, is_weak in sorted(declared().items()):
        known = {rel: found for rel, text in headers.items() if (found := _parameters(text, name))}
        if max(known) != max(headers) or len(set(known.values())) != 1:
            raise SystemExit(f"{name} has changed or is gone: {known}")
        rows.append(f"| `{name}` | {min(known)} | {'not used' if is_weak else 'refused'} |")
    ready = min(rel for rel, text in headers.items() if "BACKEND_ModelInstanceReady" in text)
    return _HEAD.format(newest=max(headers), ready=ready) + "\n".join(rows) + "\n"


def _parameters(text: str, name: str) -> str:
    found = re.search(rf"TRITON(?:SERVER|BACKEND)_\w+SPEC[^;]*?\b{name}\(([^;]*)\);", text, re.S)
    if found is None:
        return ""
    return re.sub(r"\bstruct |//[^\n]*|\s", "", found[1]) or "()"


def _git(core: Path, *arguments: str) -> str:
    command = ["git", "-C", str(core), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
