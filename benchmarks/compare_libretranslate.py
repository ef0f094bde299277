# SPDX-License-Identifier: Apache-2.0
"""Sends the same requests to LibreTranslate and to ct2-gateway (benchmarks/gateway.md).

Both serve the demo model, LibreTranslate as Argos packages on the same weights, and both search
with beams of width 4, as LibreTranslate always does:

    python -m venv LT && LT/bin/pip install libretranslate==1.9.6
    python benchmarks/compare_libretranslate.py run --libretranslate LT/bin/python

LibreTranslate takes each text as one sentence here, because its own splitter loads a model from the
network at the first request.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

SENTENCE = "The ticket office opens at 5:45."
GOOD = {"q": SENTENCE, "source": "en", "target": "de"}
TARGETS = {
    "de": ("deu_Latn", "German"),
    "fr": ("fra_Latn", "French"),
    "es": ("spa_Latn", "Spanish"),
}
BEAM_SIZE = 4  # LibreTranslate's least
STARTS_S = 120.0
# method, path, JSON body (or a form, as a string)
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/languages", None),
    ("GET", "/frontend/settings", None),
    ("GET", "/health", None),
    ("GET", "/spec", None),
    ("POST", "/translate", GOOD),
    ("POST", "/translate", {**GOOD, "source": "auto"}),
    ("POST", "/translate", {**GOOD, "q": [SENTENCE, "Hello!"], "source": "auto"}),
    ("POST", "/translate", {**GOOD, "alternatives": 2}),
    ("POST", "/translate", {**GOOD, "q": f"<p>{SENTENCE}</p>", "format": "html"}),
    ("POST", "/translate", {**GOOD, "q": "12:45", "source": "auto"}),
    ("POST", "/translate", f"q={SENTENCE}&source=en&target=de"),
    ("POST", "/translate", {}),
    ("POST", "/translate", {"q": "a"}),
    ("POST", "/translate", {"q": "a", "source": "en"}),
    ("POST", "/translate", {**GOOD, "source": "xx"}),
    ("POST", "/translate", {**GOOD, "target": "xx"}),
    ("POST", "/translate", {**GOOD, "source": "de", "target": "fr"}),
    ("POST", "/translate", {**GOOD, "format": "pdf"}),
    ("POST", "/translate", {**GOOD, "alternatives": "many"}),
    ("POST", "/translate", {**GOOD, "alternatives": 99}),
    ("POST", "/translate", [GOOD]),
    ("POST", "/translate", "{"),
    ("GET", "/translate", None),
    ("POST", "/detect", {"q": SENTENCE}),
    ("POST", "/detect", {"q": "Bonjour!"}),
    ("POST", "/detect", {}),
    ("POST", "/suggest", {**GOOD, "s": "a"}),
    ("POST", "/translate_file", {}),
    ("GET", "/download_file/none", None),
    ("GET", "/nowhere", None),
    ("OPTIONS", "/translate", None),
]


def write_packages(folder: Path) -> None:
    """Writes the demo model as Argos packages; the tag of the source begins every text."""
    import ct2_triton

    demo = Path(ct2_triton.__file__).parent / "demo_model"
    config = json.loads((demo / "model" / "config.json").read_text())
    config |= {"add_source_bos": True, "add_source_eos": True, "bos_token": "eng_Latn"}
    vocabulary = json.loads((demo / "model" / "shared_vocabulary.json").read_text())
    for code, (tag, name) in TARGETS.items():
        package = folder / f"en_{code}"
        (package / "model").mkdir(parents=True)
        shutil.copy(demo / "model" / "model.bin", package / "model")
        shutil.copy(
            demo / "checkpoint" / "sentencepiece.bpe.model", package / "sentencepiece.model"
        )
        prefix = f"__{code}__"  # without a letter that SentencePiece reads as a space
        tokens = [prefix if token == tag else token for token in vocabulary]
        (package / "model" / "shared_vocabulary.json").write_text(json.dumps(tokens))
        (package / "model" / "config.json").write_text(json.dumps(config))
        metadata = {
            "package_version": "1.0", "argos_version": "1.0", "from_code": "en",
            "from_name": "English", "to_code": code, "to_name": name, "target_prefix": prefix,
        }  # fmt: skip
        (package / "metadata.json").write_text(json.dumps(metadata))


def serve(arguments: list[str]) -> None:
    """Starts LibreTranslate; a text is one sentence."""
    from argostranslate import translate
    from libretranslate.main import main

    class Whole:
        def __init__(self, package: object) -> None:
            pass

        def split_sentences(self, text: str) -> list[str]:
            return [text]

    logging.disable(logging.INFO)  # argostranslate logs every token
    translate.MiniSBDSentencizer = Whole
    sys.argv = ["libretranslate", *arguments]
    main()


async def ask(session: Any, url: str, method: str, path: str, body: Any) -> tuple[int, str, Any]:
    """Gives the status, the type and what was answered."""
    options: dict[str, Any] = {"json": body}
    if isinstance(body, str):
        kind = "json" if body.startswith("{") else "x-www-form-urlencoded"
        options = {"data": body, "headers": {"Content-Type": f"application/{kind}"}}
    async with session.request(method, url + path, **(options if body is not None else {})) as got:
        text = await got.text()
        try:
            return got.status, got.content_type, json.loads(text)
        except ValueError:
            return got.status, got.content_type, text


async def load(session: Any, url: str, clients: int, requests: int) -> tuple[float, float]:
    """Gives translations a second and the 95th percentile of their seconds."""
    numbers = iter(range(requests))
    times = []

    async def client() -> None:
        for number in numbers:
            begun = time.perf_counter()
            body = {**GOOD, "q": f"The ticket office opens at {number % 12 + 1}:45."}
            status, _, _ = await ask(session, url, "POST", "/translate", body)
            assert status == 200
            times.append(time.perf_counter() - begun)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return requests / (time.perf_counter() - start), statistics.quantiles(times, n=20)[-1]


async def compare(urls: list[str], requests: int) -> None:
    """Prints both answers to each request, and then the speed of both in turn."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        for method, path, body in REQUESTS:
            answers = [await ask(session, url, method, path, body) for url in urls]
            print(f"\n{method} {path} {'' if body is None else json.dumps(body)}")
            for name, (status, kind, answer) in zip(
                ("LibreTranslate", "gateway"), answers, strict=True
            ):
                print(f"  {name:15} {status} {kind} {json.dumps(answer, ensure_ascii=False)[:300]}")
        print("\n| clients | server | a second | p95, ms |\n|---|---|---|---|")
        for clients, _, (name, url) in itertools.product(
            (1, 16), range(2), zip(("LibreTranslate", "gateway"), urls, strict=True)
        ):
            rate, p95_s = await load(session, url, clients, requests)
            print(f"| {clients} | {name} | {rate:.0f} | {1000 * p95_s:.0f} |", flush=True)


async def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until a program answers."""
    import aiohttp

    end = time.monotonic() + STARTS_S
    async with aiohttp.ClientSession() as session:
        while process.poll() is None and time.monotonic() < end:
            try:
                await ask(session, url, "GET", "/languages", None)
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)
            else:
                return
    raise SystemExit(f"{url} does not answer: {process.args}")


def free_port() -> int:
    """Gives a port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def run(libretranslate: Path, requests: int) -> None:
    """Starts both on one model, and compares them."""
    from ct2_triton.prepare import PrepareOptions, prepare
    from ct2_triton.serve import ServerOptions, TritonServer

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home, models = Path(folder, "home"), Path(folder, "models")
        write_packages(home / ".local" / "share" / "argos-translate" / "packages")
        settings = {"beam_size": str(BEAM_SIZE)}
        prepare(PrepareOptions("demo", models, "demo", io="text", settings=settings))
        server = TritonServer(ServerOptions([models]))
        stack.callback(server.stop)
        server.start(STARTS_S)
        urls = []
        gateway = [str(Path(sys.executable).with_name("ct2-gateway")), "--model", "demo"]
        gateway += ["--model-repository", str(models), "--url", server.grpc_url]
        for command in ([str(libretranslate), __file__, "serve"], gateway):
            port = free_port()
            process = subprocess.Popen(
                [*command, "--port", str(port)], env={**os.environ, "HOME": str(home)}
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            urls.append(f"http://127.0.0.1:{port}")
            asyncio.run(wait_for(urls[-1], process))
        asyncio.run(compare(urls, requests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="start LibreTranslate on the packages in HOME")
    running = commands.add_parser("run", help="start both and compare them")
    running.add_argument("--libretranslate", type=Path, required=True, metavar="PYTHON")
    running.add_argument("--requests", type=int, default=400)
    args, rest = parser.parse_known_args()
    if args.command == "serve":
        serve(rest)
    else:
        run(args.libretranslate, args.requests)


if __name__ == "__main__":
    main()
