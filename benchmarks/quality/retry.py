# SPDX-License-Identifier: Apache-2.0
"""Measure what `on_doubt` costs and changes, with the demo model.

The cost: clean sentences, some of them replaced by odd inputs that the model's greedy translations
are flagged for, in requests of many texts. The ways run in turn in each round, and each is compared
with `none` of its round. The change: odd inputs by kind, before and after the second search.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from grammar_pairs import draw, read_grammar

from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.serve import ServerOptions, TritonServer

MODEL = "demo-text"
CODES = ("de", "fr", "es", "it", "pt", "nl")
FULL_CODES = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn")
TEXTS = 64  # of a request
IN_FLIGHT = 4  # requests
SECOND = {"beam_size": 4, "no_repeat_ngram_size": 4}
OUTPUTS = ("text_output", "score", "quality_flags")


def strings(values: Sequence[str]) -> Any:
    """A column of BYTES."""
    return np.array([[value.encode()] for value in values], dtype=np.object_)


def translate(
    client: triton.InferenceServerClient, texts: Sequence[str], first: int, **options: Any
) -> list[tuple[str, float, list[Any]]]:
    """Translate texts, each into the next language, and give texts, scores and flags."""
    targets = [CODES[(first + i) % len(CODES)] for i in range(len(texts))]
    inputs = []
    for name, values in (
        ("text_input", texts),
        ("source_language", ["en"] * len(texts)),
        ("target_languages", targets),
    ):
        inputs.append(triton.InferInput(name, [len(texts), 1], "BYTES"))
        inputs[-1].set_data_from_numpy(strings(values))
    wanted = OUTPUTS if options.get("quality") else OUTPUTS[:1]
    answer = client.infer(
        MODEL,
        inputs,
        outputs=[triton.InferRequestedOutput(name) for name in wanted],
        parameters={"split": "none", **options},
    )
    output, *others = [answer.as_numpy(name).ravel().tolist() for name in wanted]
    found = [text.decode() for text in output]
    scores, flags = others or ([0.0] * len(found), [b"[]"] * len(found))
    return [
        (text, score, [flag for flag in json.loads(raised) if isinstance(flag, str)])
        for text, score, raised in zip(found, scores, flags, strict=True)
    ]


def rate(client: triton.InferenceServerClient, texts: Sequence[str], **options: Any) -> float:
    """Sentences a second, with several requests in flight."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        for _ in pool.map(
            lambda at: translate(client, texts[at : at + TEXTS], at, **options),
            range(0, len(texts), TEXTS),
        ):
            pass
    return len(texts) / (time.perf_counter() - begin)


def all_of(
    client: triton.InferenceServerClient, texts: Sequence[str], **options: Any
) -> list[tuple[str, float, list[Any]]]:
    """Translate texts with verdicts."""
    found = []
    for at in range(0, len(texts), TEXTS):
        found += translate(client, texts[at : at + TEXTS], at, quality=True, **options)
    return found


def measure_change(
    client: triton.InferenceServerClient, judge: Any, rows: Sequence[Mapping[str, Any]]
) -> list[int]:
    """Print flagged rows before and after; give the places of the rows that are flagged."""
    texts = [row["text"] for row in rows]
    first = all_of(client, texts, return_scores=True, beam_size=1)
    second = all_of(client, texts, return_scores=True, **SECOND)
    before, after, better = Counter[str](), Counter[str](), Counter[str]()
    flagged = [i for i, one in enumerate(first) if one[2]]
    for i in flagged:
        verdicts = [
            judge.judge(texts[i], one[0], FULL_CODES[i % len(CODES)], one[1], "eng_Latn")
            for one in (first[i], second[i])
        ]
        replaced = load_core().better_verdict(verdicts[1]["doubts"], verdicts[0]["doubts"])
        kind = rows[i]["kind"]
        before[kind] += 1
        better[kind] += replaced
        after[kind] += bool(second[i][2] if replaced else first[i][2])
    for kind, count in sorted(before.items()):
        print(f"{kind:24} {count:5} flagged, {better[kind]:5} better, {after[kind]:5} flagged then")
    print(f"{'all':24} {len(flagged):5} of {len(rows)} flagged, {better.total()} better, "
          f"{after.total()} flagged then")  # fmt: skip
    return flagged


def measure_cost(
    client: triton.InferenceServerClient, texts: Sequence[str], rounds: int, what: str
) -> None:
    """Print throughput by way."""
    ways = ("none", "flag", "retry")
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for way in ways:
        rate(client, texts[: 8 * TEXTS], beam_size=1, on_doubt=way)
    for i in range(rounds):
        for way in ways[i % 3 :] + ways[: i % 3]:
            rates[way].append(rate(client, texts, beam_size=1, on_doubt=way))
    for way in ways:
        parts = sorted(one / base for one, base in zip(rates[way], rates["none"], strict=True))
        middle, typical = statistics.median(parts), statistics.median(rates[way])
        span = f"({parts[0]:.3f} to {parts[-1]:.3f})"
        print(f"{what}, {way:5}: {typical:6.0f} sentences a second, {middle:.3f} of none {span}")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=Path, required=True, help="JSON lines of held_out.py")
    parser.add_argument("--clean", type=int, default=6400, help="sentences of the cost")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--flagged", type=float, default=0.02, help="part of them")
    args = parser.parse_args()
    odd = [json.loads(line) for line in args.inputs.read_text(encoding="utf-8").splitlines()]
    rng = random.Random(77)
    templates, values = read_grammar(Path("demo_model/grammar"))
    clean = list(
        {draw(rng, rng.choice(templates), values)["eng"]: None for _ in range(4 * args.clean)}
    )
    clean = clean[: args.clean]
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="text"))
        judge = load_core().Judge(
            (Path(folder) / "demo" / "1" / "model" / FILE_NAME).read_text(encoding="utf-8")
        )
        with TritonServer(ServerOptions([Path(folder)])) as server:
            client = triton.InferenceServerClient(server.grpc_url)
            flagged = measure_change(client, judge, odd)
            measure_cost(client, clean, args.rounds, "clean sentences")
            mixed = list(clean)
            step = round(1 / args.flagged)
            for place in range(0, len(mixed), step):
                # The language is that of the place, which decides whether it is flagged.
                fits = [i for i in flagged if i % len(CODES) == place % len(CODES)]
                mixed[place] = odd[rng.choice(fits)]["text"]
            measure_cost(client, mixed, args.rounds, f"{100 * args.flagged:g} % flagged")


if __name__ == "__main__":
    main()
