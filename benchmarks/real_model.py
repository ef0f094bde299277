# SPDX-License-Identifier: Apache-2.0
"""Takes a checkpoint from the hub to a page of results.

Prepares the model and proves it against ``generate``, serves it, translates a text, scores the
translation against a reference, compares the server with Triton's Python backend, and writes what
was found to ``page.md``. It runs the project's own commands and prints them, so each step can be
repeated by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ct2_triton.bench.comparison import check_lines
from ct2_triton.bench.quality import read_pair, scores
from ct2_triton.bench.record import describe_machine
from ct2_triton.bench.scenarios import parse_scenario
from ct2_triton.errors import Ct2TritonError
from ct2_triton.serve import ServerOptions, TritonServer

COMMANDS = Path(sys.executable).parent
SENTENCES = Path(__file__).resolve().parents[1] / "python/ct2_triton/bench/sentences.txt"
CONTENDERS = ("ct2-triton-int8", "python-ctranslate2-int8", "python-transformers-float32")
SCENARIOS = ("single:1", "single:16", "single:48")
NAME = "model"


@dataclass(frozen=True)
class Translated:
    """What one pass over the text took: lines, and seconds from the first to the last."""

    lines: int
    seconds: float


def main() -> int:
    """Run all steps.

    Returns:
        The exit code: 0 done, that of a command that failed, 1 with a sentence on stderr.
    """
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        _check(options)  # before a download
        prepared = _prepare(options)
        translated = _translate(options)
        scored = _score(options)
        _compare(options)
        _write_page(options, prepared, translated, scored)
    except subprocess.CalledProcessError as error:  # the command has said why
        return error.returncode
    except (Ct2TritonError, OSError) as error:
        print(f"real_model: {error}", file=sys.stderr)
        return 1
    print(f"page: {options.output / 'page.md'}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="hub id (owner/name), folder or package, as for ct2-prepare")
    parser.add_argument("--from", dest="source", default="en", help="language of the text")
    parser.add_argument("--to", dest="target", default="de", help="language to translate into")
    parser.add_argument("--text", type=Path, default=SENTENCES, help="a sentence a line")
    parser.add_argument("--reference", type=Path, help="their translations, line by line, to score")
    parser.add_argument("--quantization", default="int8", help="type of the served weights")
    parser.add_argument("--contender", action="append", help="of ct2-bench; repeatable")
    parser.add_argument("--scenario", action="append", help="of ct2-bench; repeatable")
    parser.add_argument("--minutes", type=float, default=20, help="how long to compare")
    parser.add_argument("--output", type=Path, default=Path("real-model"), help="a folder")
    return parser.parse_args()


def _check(options: argparse.Namespace) -> None:
    """Refuse a text that the scores or the comparison cannot use."""
    lines, _ = read_pair(options.text, options.reference)
    scenarios = map(parse_scenario, options.scenario or SCENARIOS)
    check_lines(lines, options.text.name, scenarios)


def _prepare(options: argparse.Namespace) -> dict[str, Any]:
    repository = options.output / "model_repository"
    _command(
        *("ct2-prepare", options.model, "--name", NAME, "--force", "--io", "both"),
        *("--quantization", options.quantization, "--model-repository", repository),
    )
    prepared: dict[str, Any] = json.loads((repository / NAME / "ct2_model.json").read_text("utf-8"))
    return prepared


def _translate(options: argparse.Namespace) -> Translated:
    """Serve the model and translate the text with the command that users have."""
    repository = options.output / "model_repository"
    translation = options.output / f"translation.{options.target}.txt"
    for old in options.output.glob(f"{translation.name}*"):  # the command would go on from there
        old.unlink()
    with (options.output / "tritonserver.log").open("w", encoding="utf-8") as log:
        print(f"$ ct2-serve --model-repository {repository} --free-ports &", flush=True)
        with TritonServer(ServerOptions(model_repositories=[repository], log=log)) as server:
            begin = time.monotonic()
            _command(
                *("ct2-translate", "--model", f"{NAME}-text", "--url", server.grpc_url),
                *("--from", options.source, "--to", options.target),
                *("-i", options.text, "-o", translation),
            )
            seconds = time.monotonic() - begin
    return Translated(len(translation.read_text("utf-8").splitlines()), seconds)


def _score(options: argparse.Namespace) -> list[str]:
    """Score the translation with sacrebleu; the signatures say how."""
    if options.reference is None:
        return ["not scored: no reference was given"]
    translation = options.output / f"translation.{options.target}.txt"
    hypotheses = translation.read_text("utf-8").splitlines()
    found = scores(hypotheses, options.reference.read_text("utf-8").splitlines())
    return [f"{name} = {score:.2f} ({how})" for name, score, how in found]


def _compare(options: argparse.Namespace) -> None:
    prepared = options.output / "model_repository" / NAME
    arguments = ["--model", str(prepared), "--from", options.source, "--to", options.target]
    arguments += ["--text", str(options.text), "--minutes", str(options.minutes)]
    for name in options.contender or CONTENDERS:
        arguments += ["--contender", name]
    for name in options.scenario or SCENARIOS:
        arguments += ["--scenario", name]
    _command("ct2-bench", *arguments, "--output", options.output / "comparison")


def _write_page(
    options: argparse.Namespace, prepared: dict[str, Any], translated: Translated, scored: list[str]
) -> None:
    source = prepared["source"]
    weights = options.output / "model_repository" / NAME / "1" / "model" / "model.bin"
    report = (options.output / "comparison" / "report.md").read_text("utf-8")
    facts = {
        "commit": source["commit"] or "none",
        "licence": source["license"] or "not stated",
        "family": prepared["family"],
        "weights": f"{options.quantization}, {weights.stat().st_size / 2**20:,.0f} MiB",
        "machine": ", ".join(f"{name} {value}" for name, value in describe_machine().items()),
        "versions": ", ".join(f"{name} {value}" for name, value in prepared["versions"].items()),
        "text": f"{options.text}, {translated.lines:,} lines, {options.source} to {options.target}",
        "one client of ct2-translate": f"{translated.lines / translated.seconds:,.1f} lines/s",
        "scores": "; ".join(scored),
    }
    lines = [f"# {source['id']}", "", "|  |  |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    lines += [
        "",
        "## Proof",
        "",
        "What `ct2-prepare` compared with `generate` of transformers:",
        "",
    ]
    lines += ["```json", json.dumps(prepared["verification"], indent=1), "```", ""]
    report = re.sub(r"^#", "##", report, flags=re.MULTILINE).replace("](", "](comparison/")
    lines += [report]
    (options.output / "page.md").write_text("\n".join(lines), encoding="utf-8")


def _command(name: str, *arguments: str | Path) -> None:
    print(f"$ {name} {shlex.join(map(str, arguments))}", flush=True)
    subprocess.run([COMMANDS / name, *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
