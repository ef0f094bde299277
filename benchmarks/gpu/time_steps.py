# SPDX-License-Identifier: Apache-2.0
"""Times the kernels of backend/gpu/ on a GPU: encoder passes and decoder steps of real shapes.

    python benchmarks/gpu/time_steps.py kernels.bin --output times.json

Models have random weights of the shape (ct2_triton.bench.shapes). For each number of rows, sources
of 8 to 40 tokens are encoded, and the rows take some steps, several of them in one go. Prints the
median of the rounds, and the share of a step that reading its weights takes at the bandwidth of a
copy in the GPU's memory. The output also has the time of each kernel of a step, launched one by one
behind other work; tools/machine_report.py makes tables of it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from ct2_triton import _core
from ct2_triton.bench.shapes import write_shape

STEPS = 50
JOINING_TOKENS = 512  # what a loop encodes between two steps by default
_COPIED_BYTES = 1 << 30
_WEIGHT_BYTES = {"i8": 1, "f16": 2, "bf16": 2, "f32": 4}  # by part of a kernel's name


def convert(shape: str, folder: Path, kind: str) -> Path:
    """Writes a CTranslate2 model of a shape."""
    from ctranslate2.converters import TransformersConverter

    checkpoint = folder / shape
    if not checkpoint.exists():
        write_shape(shape, folder)
    output = folder / f"{shape}-{kind}"
    quantization = "int8" if kind == "int8" else "float16"
    TransformersConverter(str(checkpoint)).convert(str(output), quantization=quantization)
    return output


def timed(action: Any) -> float:
    """Return the milliseconds that an action takes."""
    begin = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begin)


def copy_gb_s(rounds: int = 5) -> float:
    """Return the bandwidth of the first GPU's memory, read and written by copies."""
    import torch

    memory = torch.empty(_COPIED_BYTES, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(memory)

    def copy() -> None:
        other.copy_(memory)
        torch.cuda.synchronize()

    copy()
    return 2 * _COPIED_BYTES / 1e6 / min(timed(copy) for _ in range(rounds))


def by_kernel(rounds: list[list[tuple[str, int, int, float]]]) -> list[dict[str, Any]]:
    """Add up what each kernel took in a step, by its name and the sizes of its matrix.

    Args:
        rounds: For each, GpuDecoder.kernel_times.

    Returns:
        For each, in the order of its first launch: `launches`, the median of the rounds in `ms`,
        and the bytes of the weights that it read.
    """
    sums: dict[tuple[str, int, int], list[list[float]]] = {}
    for i, times in enumerate(rounds):
        for kernel, outputs, inputs, ms in times:
            sums.setdefault((kernel, outputs, inputs), [[] for _ in rounds])[i].append(ms)
    return [
        {
            "kernel": kernel,
            "outputs": outputs,
            "inputs": inputs,
            "launches": len(each[0]),
            "ms": statistics.median(map(sum, each)),
            "weight_bytes": len(each[0]) * outputs * inputs * _weight_bytes(kernel),
        }
        for (kernel, outputs, inputs), each in sums.items()
    ]


def _weight_bytes(kernel: str) -> int:
    return next((_WEIGHT_BYTES[part] for part in kernel.split("_") if part in _WEIGHT_BYTES), 0)


def _source(rng: random.Random, tokens: int) -> list[int]:
    return [rng.randrange(10, 5000) for _ in range(tokens)]


def _encoding_ms(decoder: Any, sources: list[list[int]]) -> float:
    names: list[int] = []

    def encode() -> None:
        names.extend(decoder.encode(sources))
        decoder.wait()

    ms = timed(encode)
    for name in names:
        decoder.forget_encoding(name)
    return ms


def measure(
    model: Path, options: argparse.Namespace, kind: str, rows: int, weights_gb: float
) -> dict[str, Any]:
    """Times a model with one number of rows."""
    limits = {
        "sequences": rows,
        "step_tokens": max(rows, 64),
        "encoded_tokens": 4096,
        "source_tokens": 64,
        "target_tokens": 256,
        "cache_bytes": options.cache_mib << 20,
    }
    types = "int8_float16" if kind == "int8" else kind
    decoder = _core.GpuDecoder(
        str(options.library), str(options.images), str(model), types, None, limits
    )
    rng = random.Random(1)
    sources = [_source(rng, rng.randint(8, 40)) for _ in range(rows)]
    joining = [_source(rng, 32) for _ in range(JOINING_TOKENS // 32)]
    encoding = [_encoding_ms(decoder, sources) for _ in range(options.rounds)]
    joins = [_encoding_ms(decoder, joining) for _ in range(options.rounds)]
    names = [decoder.join(name, 1, {"limit": 250})[0] for name in decoder.encode(sources)]
    decoder.read(decoder.launch([(name, 0, [2], 1) for name in names]))
    position = 0

    def advance() -> None:
        """Launches steps as a loop does: the next one runs while the last one is read."""
        nonlocal position
        step = None
        for _ in range(options.steps):
            position += 1
            ahead = decoder.launch([(name, position, [], 1) for name in names])
            if step is not None:
                decoder.read(step)
            step = ahead
        decoder.read(step)

    steps = [timed(advance) for _ in range(options.rounds)]
    step = statistics.median(steps) / options.steps
    places = range(position + 1, position + 1 + options.rounds)
    kernels = by_kernel([decoder.kernel_times([(n, at, [], 1) for n in names]) for at in places])
    weights_ms = decoder.weight_bytes / weights_gb / 1e6
    print(
        f"{model.name:24} {rows:4} rows: step {step:7.3f} ms ({decoder.kernels_of_last_step} "
        f"kernels; all weights at {weights_gb:,.0f} GB/s: {weights_ms:.3f} ms), "
        f"{sum(map(len, sources))} tokens encoded in {statistics.median(encoding[1:]):7.3f} ms",
        flush=True,
    )
    return {
        "model": model.name,
        "rows": rows,
        "device": decoder.device,
        "weight_bytes": decoder.weight_bytes,
        "kernels": decoder.kernels_of_last_step,
        "steps_of_a_round": options.steps,
        "rounds_ms": steps,
        "encoding_ms": encoding,
        "joining_ms": joins,
        "bandwidth_gb_s": weights_gb,
        "kernels_of_a_step": kernels,
    }


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("--library", type=Path, default=Path("libcuda.so.1"))
    parser.add_argument("--shapes", nargs="+", default=["transformer-base", "nllb-600m"])
    parser.add_argument("--types", nargs="+", default=["float16", "int8"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 48, 128])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--cache-mib", type=int, default=8192, help="of keys and values")
    parser.add_argument("--bandwidth", type=float, help="GB/s (default: measured by copies)")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    bandwidth = options.bandwidth or copy_gb_s()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in options.shapes:
            for kind in options.types:
                model = convert(shape, Path(folder), kind)
                for rows in options.rows:
                    results.append(measure(model, options, kind, rows, bandwidth))
                    options.output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
