# SPDX-License-Identifier: Apache-2.0
"""Builds each mutant of tests/mutation/mutants.json and runs the tests that cover its file.

    python tests/mutation/run.py             all, those of an earlier run left out
    python tests/mutation/run.py 4 17        these
    python tests/mutation/run.py --table     what was found so far, as a table

A clone in build/mutation has the last commit, a build of its own, and an environment that imports
the package from the clone, so that neither the checkout nor its .venv is changed. Test files that
are called like the file of the fault begin, and the first failure ends a run. A test that fails
without the mutant, too, or whose file passes when it is repeated with it, finds nothing: the run
goes on without that test. An error of the collection finds nothing, either. Results are kept in
tests/mutation/results.json, where "why" is written by hand.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from areas import AREAS

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutation"
TREE = WORK / "tree"
RESULTS = Path(__file__).with_name("results.json")
MUTANTS = Path(__file__).with_name("mutants.json")
# The binaries of the checkout.
INSTALLED = Path(sysconfig.get_path("purelib")) / "ct2_triton"
SHARE = 3  # of the cases of each test
LIMIT_S = 1800  # for the tests of a mutant
TEST_LIMIT_S = 90  # a mutant that waits for ever is found


def make_tree() -> None:
    """Make the clone, or bring it to the last commit of the checkout."""
    if not TREE.exists():
        _call("git", "clone", "-q", "--shared", str(ROOT), str(TREE), folder=ROOT)
        environment(TREE / ".venv")
        (TREE / ".venvs").symlink_to((ROOT / ".venvs").resolve())
        (TREE / "build").mkdir()
        (TREE / "build" / "test-models").symlink_to(ROOT / "build" / "test-models")
    commit = _call("git", "rev-parse", "HEAD", folder=ROOT).strip()
    _call("git", "fetch", "-q", "origin", commit)
    _call("git", "checkout", "-q", "--force", "--detach", commit)


def environment(folder: Path) -> None:
    """An environment with the packages of the checkout's one, and the package of the clone."""
    packages = Path(sysconfig.get_path("purelib"))
    _call(sys.executable, "-m", "venv", "--without-pip", str(folder), folder=ROOT)
    mine = next(folder.glob("lib/python*/site-packages"))
    # Only *.pth files of `mine` are read: the editable install of the checkout is not active.
    paths = [TREE / "python", packages]
    (mine / "mutation.pth").write_text("".join(f"{path}\n" for path in paths))
    for headers in ("nlohmann_json", "pybind11"):  # which a compiler cache sees in the same place
        (mine / headers).symlink_to(packages / headers)
    for script in (Path(sys.prefix) / "bin").iterdir():
        if script.name.startswith(("ct2-", "tritonserver")) and script.is_file():
            text = script.read_text(errors="surrogateescape")
            copy = folder / "bin" / script.name
            copy.write_text(text.replace(sys.prefix, str(folder)), errors="surrogateescape")
            copy.chmod(0o755)


def build() -> str | None:
    """Compile the core and the backend of the clone; what the compiler says if it fails."""
    tools = Path(sys.prefix) / "bin"
    if not (TREE / "build" / "release" / "build.ninja").exists():
        _call(
            *(
                str(tools / "cmake"),
                "--preset",
                "release",
                f"-DPython_EXECUTABLE={TREE / '.venv/bin/python'}",
            ),
            f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
        )
    command = [tools / "ninja", "-C", "build/release", "_core", "triton_ctranslate2"]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stdout[-2000:]


def apply(mutant: dict[str, Any]) -> None:
    """Put the fault in place of its line: of equal lines the one nearest to where it was drawn."""
    path = TREE / mutant["file"]
    lines = path.read_text(encoding="utf-8").split("\n")
    places = [at for at, line in enumerate(lines, start=1) if line == mutant["line"]]
    if not places:
        raise LookupError(f"{mutant['file']} has no line {mutant['line'].strip()!r} any more")
    lines[min(places, key=lambda at: abs(at - mutant["number"])) - 1] = mutant["fault"]
    path.write_text("\n".join(lines), encoding="utf-8")


def tests_of(mutant: dict[str, Any]) -> list[str]:
    """The test files that cover a mutant's area; those begin whose names share words with its file.

    The others keep the order of the area, in which quick ones come first.
    """
    tests = TREE / "tests"
    found: dict[Path, None] = {}
    for pattern in AREAS[mutant["area"]].tests:
        paths = sorted(tests.glob(pattern))
        assert paths, f"{mutant['area']}: no tests are called {pattern}"
        for path in paths:
            found.update(
                dict.fromkeys(sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
            )
    words = set(Path(mutant["file"]).stem.split("_"))
    files = sorted(found, key=lambda path: -len(words & set(path.stem.split("_"))))
    return [str(path.relative_to(TREE)) for path in files]


def outcome_of(mutant: dict[str, Any]) -> tuple[str, str]:
    """Whether the tests find a mutant, and what of them does."""
    try:
        apply(mutant)
    except LookupError as error:
        return "gone", str(error)
    folder = INSTALLED  # a fault in Python needs no other binaries
    if mutant["file"].endswith(".cc"):
        if (complaint := build()) is not None:
            return "not built", complaint
        folder = TREE / "build" / "release" / "backend"
    left_out: list[str] = []
    while True:
        status, log = run_tests(tests_of(mutant), folder, ["-x", *left_out])
        if status is None:
            return "error", f"the tests took more than {LIMIT_S} s"
        if (failed := failed_test(log)) is None:
            return ("missed", "") if status == 0 else ("error", log[-2000:])
        again = run_tests(failed.split("::")[:1], folder, ["-x", *left_out])[0] != 0
        restore()
        if again and run_tests([failed], INSTALLED, [])[0] == 0:
            return "found", failed
        print(f"left out, not the mutant's failure: {failed}", flush=True)
        left_out.append(f"--deselect={failed}")
        apply(mutant)


def restore() -> None:
    """Take the fault out of the clone's files."""
    _call("git", "checkout", "-q", "--force", "HEAD")


def run_tests(tests: list[str], folder: Path, options: list[str]) -> tuple[int | None, str]:
    """Status and output of tests with the binaries of a folder; None: no end."""
    variables = {
        "CT2_TRITON_CORE": str(next(folder.glob("_core.*.so"))),
        "CT2_TRITON_PLUGIN": str(next(folder.rglob("libtriton_ctranslate2.so"))),
        "PATH": f"{TREE / '.venv' / 'bin'}:{os.environ['PATH']}",
    }
    usual = ["-q", "-p", "no:cacheprovider", "-m", "not long", f"--timeout={TEST_LIMIT_S}"]
    usual.append("--timeout-method=thread")  # a signal does not end what waits in the core
    if not any("::" in test for test in tests):
        usual += ["--share", str(SHARE)]
    log, status = WORK / "tests.log", None
    with log.open("w") as output, contextlib.suppress(subprocess.TimeoutExpired):
        status = subprocess.run(
            [TREE / ".venv/bin/python", "-m", "pytest", *usual, *options, *tests],
            cwd=TREE, env={**os.environ, **variables}, stdout=output,
            stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
        ).returncode  # fmt: skip
    return status, log.read_text()


def failed_test(log: str) -> str | None:
    """The test that failed, or whose fixture did, or that ended the process; without its case.

    A test that takes too long ends it, too.
    """
    if found := re.search(r"^(?:FAILED|ERROR) (tests/\S+?::\w+)", log, re.MULTILINE):
        return found[1]
    if "Fatal Python error" not in log and "+ Timeout +" not in log:
        return None
    found = re.search(r'"[^"]*/(tests/[^"]+/test_\w+\.py)", line \d+,? in (\w+)', log)
    if found is None:
        return None
    return f"{found[1]}::{found[2]}" if found[2].startswith("test_") else found[1]


def run(numbers: list[int], mutants: list[dict[str, Any]]) -> None:
    """Run mutants by their numbers, and keep what came out."""
    for number in numbers:
        mutant, begun = mutants[number], time.monotonic()
        outcome, by = outcome_of(mutant)
        restore()
        seconds = round(time.monotonic() - begun)
        results = read_results() | {str(number): {"outcome": outcome, "by": by, "seconds": seconds}}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{number}: {outcome} after {seconds} s: {mutant['file']}: {by}", flush=True)


def read_results() -> dict[str, dict[str, Any]]:
    """Results of earlier runs, by the number of the mutant."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def table(mutants: list[dict[str, Any]]) -> str:
    """What was found, as a table in Markdown."""
    rows = ["| number | file | operator | fault | outcome | by |", "|---|---|---|---|---|---|"]
    for number, result in sorted(read_results().items(), key=lambda item: int(item[0])):
        mutant = mutants[int(number)]
        fault = mutant["fault"].strip().replace("|", "\\|")
        place = f"{mutant['file']}:{mutant['number']}"
        by = result["by"] or result.get("why", "")
        by = by.split(" - ")[0].replace("|", "\\|").replace("\n", " ")
        cells = (number, place, mutant["operator"], f"`{fault}`", result["outcome"], by)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _call(*command: str, folder: Path = TREE) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="*", help="mutants, counted from 0")
    parser.add_argument("--table", action="store_true", help="print the results so far")
    arguments = parser.parse_args()
    mutants = json.loads(MUTANTS.read_text(encoding="utf-8"))
    if arguments.table:
        print(table(mutants))
        return
    WORK.mkdir(parents=True, exist_ok=True)
    make_tree()
    known = read_results()
    run(arguments.numbers or [n for n in range(len(mutants)) if str(n) not in known], mutants)


if __name__ == "__main__":
    main()
