# SPDX-License-Identifier: Apache-2.0
"""Holds the backend on a GPU against CTranslate2 itself on that GPU, and writes what differs.

    python tools/device_report.py                     the demo model on the GPU, in float32 weights
    python tools/device_report.py --device cpu        the same steps on this machine's processor
    python tools/device_report.py --model facebook/nllb-200-distilled-600M --rows 2000

One server has a model for each type that the device computes with, and one of two instances; on a
GPU, where these run as calls of CTranslate2, also models with a decode loop on our kernels. Each is
loaded alone to measure its memory; then all of them translate at once. The exit status is 1 if a
row sent alone gets a float32 translation other than the engine's, or if a request fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import ctranslate2
import numpy as np
import psutil
from google.protobuf import text_format
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.grpc.model_config_pb2 import ModelConfig

from ct2_triton.arguments import count
from ct2_triton.bench.models.engine import EngineTranslator
from ct2_triton.bench.models.translator import Settings
from ct2_triton.bench.record import describe_machine, describe_versions
from ct2_triton.bench.setup import Row, Setup
from ct2_triton.bench.workload import SENTENCES, text_workload
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.serve import ServerOptions, TritonServer
from ct2_triton.serve.machine import count_gpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.prepared_model import PreparedModel

TYPES = ("float32", "float16", "bfloat16", "int8_float16", "int8_bfloat16", "int8_float32", "int8")
TWICE = "float32-twice"
"""The model of two instances."""
LOOPS = tuple(f"{kind}-loop" for kind in ("float32", "float16", "bfloat16", "int8_float16"))
"""The models with a decode loop on a GPU."""

Answers = list[tuple[int, ...]]
_IN_FLIGHT = 32
_UNLOAD_LIMIT_S = 120.0
_MIB = 2**20


@dataclass
class Outcome:
    """Measurements of one served model.

    Attributes:
        name: Its compute type, `TWICE`, or one of `LOOPS`.
        taken_bytes: Memory after loading, less memory before loading.
        kept_bytes: Memory after unloading, less memory before loading.
        alone: Its translations of rows sent one at a time.
        together: Its translations of rows sent together, to all models at once.
        engine: CTranslate2's translations with this type, one row per call.
    """

    name: str
    taken_bytes: int = 0
    kept_bytes: int = 0
    alone: Answers = field(default_factory=list)
    together: Answers = field(default_factory=list)
    engine: Answers = field(default_factory=list)

    @property
    def compute_type(self) -> str:
        """CTranslate2's name of the type."""
        return self.name.partition("-")[0]


class Server:
    """A tritonserver that loads models on request, and a client of it."""

    def __init__(self, repository: Path, device: str) -> None:
        """Start the server without a model."""
        arguments = ["--model-control-mode=explicit"]
        self._server = TritonServer(ServerOptions([repository], server_arguments=arguments))
        self._server.start()
        self.client = InferenceServerClient(self._server.grpc_url)
        self._device = device

    def stop(self) -> None:
        """Stop the server."""
        self.client.close()
        self._server.stop()

    def used_bytes(self) -> int:
        """Return the bytes in use on the first GPU, or by the server's process."""
        if self._device == "cpu":
            used: int = psutil.Process(self._server.process.pid).memory_info().rss
            return used
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(shown.split()[0]) * _MIB

    def measure_load(self, outcome: Outcome) -> None:
        """Load and unload a model, and measure memory."""
        before = self.used_bytes()
        self.client.load_model(outcome.name)
        outcome.taken_bytes = self.used_bytes() - before
        self.client.unload_model(outcome.name)
        deadline = time.monotonic() + _UNLOAD_LIMIT_S
        while (state := self._state(outcome.name)) != "UNAVAILABLE":
            if time.monotonic() > deadline:
                said = f"{outcome.name} is {state} {_UNLOAD_LIMIT_S:g} s after its unload"
                raise TimeoutError(said)
            time.sleep(0.05)
        outcome.kept_bytes = self.used_bytes() - before

    def _state(self, name: str) -> str:
        models = self.client.get_model_repository_index().models
        return next(str(model.state) for model in models if model.name == name)

    def translate(self, model: str, row: Row) -> tuple[int, ...]:
        """Send one row; return the IDs of its translation."""
        inputs = [_tensor("INPUT_IDS", row.input_ids)]
        if row.target_prefix:
            inputs.append(_tensor("TARGET_PREFIX", row.target_prefix))
        answer = self.client.infer(model, inputs).as_numpy("OUTPUT_IDS")
        return tuple(answer.reshape(-1).tolist())


def _tensor(name: str, ids: Sequence[int]) -> InferInput:
    tensor = InferInput(name, [1, len(ids)], "INT32")
    tensor.set_data_from_numpy(np.array([ids], dtype=np.int32))
    return tensor


def types_of(device: str) -> list[str]:
    """Return the types that CTranslate2 computes with on a device, in the order of TYPES."""
    known = ctranslate2.get_supported_compute_types("cuda" if device == "gpu" else "cpu")
    return [name for name in TYPES if name in known]


def names_of(device: str) -> list[str]:
    """Return the names of the models to compare on a device."""
    types = types_of(device)
    loops = [name for name in LOOPS if device == "gpu" and Outcome(name).compute_type in types]
    return [*types, TWICE, *loops]


def write_models(prepared: PreparedModel, repository: Path, names: Sequence[str]) -> list[Outcome]:
    """Write models of these names on the files of the prepared one."""
    outcomes = [Outcome(name) for name in names]
    for outcome in outcomes:
        config = text_format.Parse(prepared.config_file.read_text("utf-8"), ModelConfig())
        config.name = outcome.name
        config.parameters["compute_type"].string_value = outcome.compute_type
        config.instance_group[0].count = 2 if outcome.name == TWICE else 1
        if outcome.name in LOOPS:
            config.parameters["decoding"].string_value = "loop"
            config.parameters["calls"].string_value = "refuse"
        folder = repository / outcome.name
        folder.mkdir(parents=True)
        (folder / "1").symlink_to((prepared.directory / "1").resolve())
        (folder / "config.pbtxt").write_text(text_format.MessageToString(config), "utf-8")
    return outcomes


def ask_engine(outcomes: Sequence[Outcome], prepared: PreparedModel, rows: Sequence[Row],
               device: str) -> None:  # fmt: skip
    """Have CTranslate2's own module translate each row alone, in each type, in this process."""
    answers: dict[str, Answers] = {}
    for outcome in outcomes:
        kind = outcome.compute_type
        if kind not in answers:
            settings = Settings(str(prepared.model_folder), precision=kind, device=device)
            engine = EngineTranslator(settings)
            answers[kind] = [tuple(engine.translate([row])[0]) for row in rows]
        outcome.engine = answers[kind]


def ask_server(outcomes: Sequence[Outcome], repository: Path, rows: Sequence[Row],
               device: str) -> None:  # fmt: skip
    """Have the server translate: each model with rows one by one, then all models at once."""
    server = Server(repository, device)
    try:
        for outcome in outcomes:
            server.measure_load(outcome)
        for outcome in outcomes:
            server.client.load_model(outcome.name)
        for outcome in outcomes:
            outcome.alone = [server.translate(outcome.name, row) for row in rows]
        asked = [(outcome.name, row) for row in rows for outcome in outcomes]
        with ThreadPoolExecutor(_IN_FLIGHT) as threads:
            answers = list(threads.map(lambda each: server.translate(*each), asked))
        for i, outcome in enumerate(outcomes):
            outcome.together = answers[i :: len(outcomes)]
    finally:
        server.stop()


def different(answers: Answers, others: Answers) -> int:
    """Return how many translations differ from those at the same positions."""
    return sum(one != other for one, other in zip(answers, others, strict=True))


def is_exact(outcomes: Sequence[Outcome]) -> bool:
    """Whether every float32 model translates rows sent alone as the engine does."""
    exact = [one for one in outcomes if one.compute_type == "float32"]
    return bool(exact) and not any(different(one.alone, one.engine) for one in exact)


def markdown(outcomes: Sequence[Outcome], device: str, model: str, stored: str) -> str:
    """Write the report."""
    rows = len(outcomes[0].engine)
    facts = {**describe_machine(), **describe_versions()}
    missing = [name for name in TYPES if name not in [one.name for one in outcomes]]
    lines = [
        f"### {model} on a {device}, {rows} rows, weights stored in {stored}",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        f"- types that this device lacks: {', '.join(missing) or 'none'}",
        "",
        "Answers that differ, and memory in MiB. *Engine*: CTranslate2's Python module on the same",
        f"device, in the same type, a row a call. *Company*: {_IN_FLIGHT} requests on their way,",
        "to all these models at once. `float32-twice` has two instances; `-loop`: a decode loop on",
        "our kernels. *From float32*: from the engine's answers in float32.",
        "",
        "| model | alone, from engine | in company, from alone | from float32 | loaded | left |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        counts = (
            different(one.alone, one.engine),
            different(one.together, one.alone),
            different(one.alone, outcomes[0].engine),
        )
        cells = [f"{n} ({n / rows:.2%})" for n in counts]
        cells += [f"{size / _MIB:.0f}" for size in (one.taken_bytes, one.kept_bytes)]
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, write the report, and say whether float32 is exact."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="default: gpu")
    parser.add_argument("--model", default="demo", help="as for ct2-prepare (default: demo)")
    parser.add_argument("--stored", default="float32", help="type that the weights are stored in")
    parser.add_argument("--rows", type=count, default=1000, help="(default: %(default)s)")
    parser.add_argument("--from", dest="source", default="en", help="language of the text")
    parser.add_argument("--to", default="de,fr,es,it", help="target languages, comma-separated")
    parser.add_argument("--text", type=Path, default=SENTENCES, help="a sentence a line")
    parser.add_argument("--output", type=Path, help="the report (default: standard output)")
    args = parser.parse_args(arguments)
    if args.device == "gpu" and count_gpus() == 0:
        parser.exit(2, "device_report.py: no NVIDIA GPU and driver here; try --device cpu\n")
    with tempfile.TemporaryDirectory(prefix="device-report-") as folder:
        setup = Setup(args.model, Path(folder), device=args.device)
        prepared = setup.prepared(args.stored)
        tokenizer = Tokenizer(prepared.tokenizer_folder)
        texts = args.text.read_text("utf-8").splitlines()
        languages = (args.source or None, [code for code in args.to.split(",") if code])
        workload = text_workload(texts, args.text.name, setup, tokenizer, *languages)
        rows = [row for sentence in workload.sentences for row in sentence.rows][: args.rows]
        repository = Path(folder) / "repository"
        outcomes = write_models(prepared, repository, names_of(args.device))
        ask_engine(outcomes, prepared, rows, args.device)
        ask_server(outcomes, repository, rows, args.device)
    report = markdown(outcomes, args.device, args.model, args.stored)
    if args.output:
        args.output.write_text(report, encoding="utf-8")
    else:
        sys.stdout.write(report)
    return int(not is_exact(outcomes))


if __name__ == "__main__":
    sys.exit(main())
