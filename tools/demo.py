# SPDX-License-Identifier: Apache-2.0
"""The whole road in one minute: prepare a model, serve it with Triton, translate, stop.

The model is a tiny one of NLLB's shape with random weights, made here in seconds without any
download: its translations are no language, but the road is the real one. With a checkpoint of your
own: ``python tools/demo.py --checkpoint facebook/nllb-200-distilled-600M``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import tiny_models
from ct2_triton.serve import ServerOptions, TritonServer

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "demo"
COMMANDS = Path(sys.executable).parent
MODEL = "demo"
SOURCE = "eng_Latn"
TARGETS = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn")
SENTENCES = (
    "How is your day going?",
    "The meeting starts at nine o'clock.",
    "Please send me the report before Friday.",
)


def main() -> int:
    """Run the demo.

    Returns:
        0; a failing step leaves through its exception.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", help="hub id or folder (default: a tiny model made here)")
    args = parser.parse_args()
    repository = BUILD / "model_repository"
    prepare = ["--model-repository", repository, "--name", MODEL, "--force"]
    if args.checkpoint:
        _command("ct2-prepare", args.checkpoint, *prepare)
    else:
        # Untrained, it would not stop by itself before the model's limit of 256 tokens.
        _command("ct2-prepare", _tiny_checkpoint(), *prepare, "--set", "max_decoding_length=12")
    BUILD.mkdir(parents=True, exist_ok=True)
    log_path = BUILD / "tritonserver.log"
    with log_path.open("w", encoding="utf-8") as log:
        options = ServerOptions([repository], log=log)
        print(f"$ ct2-serve --model-repository {_short(repository)} --free-ports &", flush=True)
        with TritonServer(options) as server:
            print(f"ready: gRPC {server.grpc_url}, HTTP {server.http_url}")
            print(f"log: {_short(log_path)}")
            _translate(server, repository)
    print("server stopped")
    return 0


def _tiny_checkpoint() -> Path:
    folder = BUILD / "tiny-nllb"
    if not (folder / "config.json").is_file():
        print(f"making a tiny NLLB-shaped model in {_short(folder)}", flush=True)
        tiny_models.make("nllb", folder)
    return folder


def _translate(server: TritonServer, repository: Path) -> None:
    _command(
        "ct2-translate",
        "--url",
        server.grpc_url,
        "--model",
        MODEL,
        "--model-repository",
        repository,
        "--from",
        SOURCE,
        "--to",
        ",".join(TARGETS),
        text="".join(f"{sentence}\n" for sentence in SENTENCES),
    )


def _command(name: str, *arguments: str | Path, text: str | None = None) -> None:
    shown = " ".join(_short(Path(word)) if isinstance(word, Path) else word for word in arguments)
    for sentence in (text or "").splitlines():
        print(f"> {sentence}")
    print(f"$ {name} {shown}", flush=True)
    command = [str(COMMANDS / name), *map(str, arguments)]
    subprocess.run(command, input=text, text=True, encoding="utf-8", check=True)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
