# SPDX-License-Identifier: Apache-2.0
"""LibreTranslate beside ct2-gateway: its answers and the speed of both (benchmarks/gateway.md).

Both serve the demo model, LibreTranslate as Argos packages on the same weights, and both search
with beams of width 4, as LibreTranslate always does:

    python -m venv LT && LT/bin/pip install libretranslate==1.9.6
    python benchmarks/compare_libretranslate.py run --libretranslate LT/bin/python
    python benchmarks/compare_libretranslate.py record --libretranslate LT/bin/python

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
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

SENTENCE = "The ticket office opens at 5:45."
GOOD = {"q": SENTENCE, "source": "en", "target": "de"}
TARGETS = {
    "de": ("deu_Latn", "German"),
    "fr": ("fra_Latn", "French"),
    "es": ("spa_Latn", "Spanish"),
    "it": ("ita_Latn", "Italian"),
    "nl": ("nld_Latn", "Dutch"),
    "pt": ("por_Latn", "Portuguese"),
}
BEAM_SIZE = 4  # LibreTranslate's minimum
STARTS_S = 120.0
# LibreTranslate's response to each request, and the gateway's response where it differs.
RECORD = Path(__file__).parents[1] / "tests" / "server" / "gateway" / "libretranslate.json"
LIMITS = {"char-limit": "80", "batch-limit": "3", "alternatives-limit": "2"}
SERVERS = {
    "usual": [f"--{name}={limit}" for name, limit in LIMITS.items()],
    "keys": ["--api-keys", "--require-api-key-origin", "https://known.example"],
    "no files": ["--disable-files-translation"],
}
KEY = "secret"
# A file's name begins with an identifier in LibreTranslate's or the gateway's format.
_KEPT = re.compile(r"^http.*/download_file/[0-9a-f-]+\.")


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
        prefix = f"<2{code}>"  # without what Argos reads as a space
        tokens = [prefix if token == tag else token for token in vocabulary]
        (package / "model" / "shared_vocabulary.json").write_text(json.dumps(tokens))
        (package / "model" / "config.json").write_text(json.dumps(config))
        metadata = {
            "package_version": "1.0", "argos_version": "1.0", "from_code": "en",
            "from_name": "English", "to_code": code, "to_name": name, "target_prefix": prefix,
        }  # fmt: skip
        (package / "metadata.json").write_text(json.dumps(metadata))


def serve(arguments: list[str]) -> None:
    """Starts LibreTranslate, which treats each text as one sentence."""
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


async def answer_of(session: Any, url: str, request: dict[str, Any]) -> dict[str, Any]:
    """Sends a recorded request; returns the response without the parts that vary between runs."""
    import aiohttp

    headers = request.get("headers", {})
    options: dict[str, Any] = {"headers": headers, "data": request.get("body")}
    if "json" in request:
        options = {"headers": headers, "json": request["json"]}
    if "form" in request:
        options["data"] = aiohttp.FormData(request["form"])
    if "file" in request:
        name, content = request["file"]
        options["data"].add_field("file", content.encode(), filename=name)
    async with session.request(request["method"], url + request["path"], **options) as got:
        found: dict[str, Any] = {"status": got.status}
        if "Origin" in headers:
            found["origin"] = got.headers.get("Access-Control-Allow-Origin")
        if got.content_type == "application/json":
            found["json"] = _lasting(await got.json())
            if got.ok and "file" in request:
                address = (await got.json())["translatedFileUrl"]
                async with session.get(address) as kept:
                    found["file"] = await kept.text()
        return found


def _lasting(answer: Any) -> Any:
    """Counts alternatives, sorts languages, leaves out confidences and identifiers of files."""
    if isinstance(answer, list):
        found = [_lasting(one) for one in answer]
        return sorted(found, key=lambda one: one["code"]) if "code" in found[0] else found
    if not isinstance(answer, dict):
        return _KEPT.sub("/download_file/ID.", answer) if isinstance(answer, str) else answer
    return {
        name: len(value) if name == "alternatives" else _lasting(value)
        for name, value in answer.items()
        if name != "confidence"
    }


async def load(session: Any, url: str, clients: int, requests: int) -> tuple[float, float]:
    """Return translations a second and the 95th percentile of their seconds."""
    numbers = iter(range(requests))
    times = []

    async def client() -> None:
        for number in numbers:
            begun = time.perf_counter()
            body = {**GOOD, "q": f"The ticket office opens at {number % 12 + 1}:45."}
            async with session.post(f"{url}/translate", json=body) as got:
                assert got.status == 200
                await got.read()
            times.append(time.perf_counter() - begun)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return requests / (time.perf_counter() - start), statistics.quantiles(times, n=20)[-1]


async def compare(urls: list[str], requests: int) -> None:
    """Measures both alternately and prints their speed."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        print("| clients | server | a second | p95, ms |\n|---|---|---|---|")
        for clients, _, (name, url) in itertools.product(
            (1, 16), range(2), zip(("LibreTranslate", "gateway"), urls, strict=True)
        ):
            rate, p95_s = await load(session, url, clients, requests)
            print(f"| {clients} | {name} | {rate:.0f} | {1000 * p95_s:.0f} |", flush=True)


async def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until a server answers."""
    import aiohttp

    end = time.monotonic() + STARTS_S
    async with aiohttp.ClientSession() as session:
        while process.poll() is None and time.monotonic() < end:
            try:
                async with session.get(f"{url}/languages"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)
    raise SystemExit(f"{url} does not answer: {process.args}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def started(stack: ExitStack, command: list[str], home: Path) -> str:
    """Starts a server with its own home folder; the stack stops it. Returns its address."""
    port = free_port()
    process = subprocess.Popen(
        [*command, "--port", str(port)], cwd=home, env={**os.environ, "HOME": str(home)}
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    url = f"http://127.0.0.1:{port}"
    asyncio.run(wait_for(url, process))
    return url


def add_key(home: Path) -> None:
    """Makes LibreTranslate's database of API keys."""
    (home / "db").mkdir()
    with closing(sqlite3.connect(home / "db" / "api_keys.db")) as base, base:
        columns = 'api_key TEXT, req_limit INTEGER, "char_limit" INTEGER DEFAULT NULL'
        base.execute(f"CREATE TABLE api_keys ({columns})")
        base.execute("INSERT INTO api_keys VALUES (?, 1000, NULL)", (KEY,))


async def ask_all(urls: dict[str, str], record: dict[str, Any]) -> None:
    """Writes the answers to all requests into the record."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        for one in record.values():
            one["libretranslate"] = await answer_of(session, urls[one["server"]], one["request"])


def record(libretranslate: Path) -> None:
    """Sends the recorded requests to LibreTranslate and records its responses."""
    found = json.loads(RECORD.read_text())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        write_packages(home / ".local" / "share" / "argos-translate" / "packages")
        add_key(home)
        command = [str(libretranslate), str(Path(__file__).resolve()), "serve"]
        urls = {name: started(stack, command + more, home) for name, more in SERVERS.items()}
        asyncio.run(ask_all(urls, found))
    RECORD.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def run(libretranslate: Path, requests: int) -> None:
    """Starts both on one model, and compares their speed."""
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
        gateway = [str(Path(sys.executable).with_name("ct2-gateway")), "--model", "demo"]
        gateway += ["--model-repository", str(models), "--url", server.grpc_url]
        other = [str(libretranslate), str(Path(__file__).resolve()), "serve"]
        urls = [started(stack, command, home) for command in (other, gateway)]
        asyncio.run(compare(urls, requests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="start LibreTranslate on the packages in HOME")
    running = commands.add_parser("run", help="start both and compare their speed")
    running.add_argument("--libretranslate", type=Path, required=True, metavar="PYTHON")
    running.add_argument("--requests", type=int, default=400)
    recording = commands.add_parser("record", help="write LibreTranslate's answers to the record")
    recording.add_argument("--libretranslate", type=Path, required=True, metavar="PYTHON")
    args, rest = parser.parse_known_args()
    if args.command == "serve":
        serve(rest)
    elif args.command == "record":
        record(args.libretranslate.absolute())
    else:
        run(args.libretranslate.absolute(), args.requests)


if __name__ == "__main__":
    main()
