# SPDX-License-Identifier: Apache-2.0
"""Measure what `on_doubt` costs and changes, with the demo model.

The cost is time of the server's threads, for requests of many texts: clean sentences, and the same
sentences mixed with odd inputs whose greedy translations are flagged. The ways alternate in each
round, and each is compared with `none` in its round. The change is shown for odd inputs by kind, as
flagged rows before and after the second search.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tritonclient.grpc as triton
from grammar_pairs import draw, read_grammar

from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.serve import ServerOptions, TritonServer

MODEL = "demo"
CODES = ("de", "fr", "es", "it", "pt", "nl")
FULL_CODES = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "nld_Latn")
TEXTS = 64  # of a request
IN_FLIGHT = 4  # requests
SECOND = {"beam_size": 2, "no_repeat_ngram_size": 4}
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


WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "scores": {"return_scores": True},
    "flag": {"on_doubt": "flag"},
    "retry": {"on_doubt": "retry"},
}


def cost_ms(
    client: triton.InferenceServerClient, server: psutil.Process, texts: Sequence[str], way: str
) -> float:
    """Milliseconds of the server's threads for a sentence, with several requests in flight."""
    begin = sum(server.cpu_times()[:2])
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        for _ in pool.map(
            lambda at: translate(client, texts[at : at + TEXTS], at, beam_size=1, **WAYS[way]),
            range(0, len(texts), TEXTS),
        ):
            pass
    return 1000 * (sum(server.cpu_times()[:2]) - begin) / len(texts)


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
    client: triton.InferenceServerClient,
    server: psutil.Process,
    texts: Sequence[str],
    rounds: int,
    what: str,
) -> None:
    """Print the cost by way."""
    ways = [*WAYS]
    costs: dict[str, list[float]] = {way: [] for way in ways}
    for way in ways:
        cost_ms(client, server, texts[: 4 * TEXTS], way)
    for i in range(rounds):
        for way in ways[i % len(ways) :] + ways[: i % len(ways)]:
            costs[way].append(cost_ms(client, server, texts, way))
    for way in ways:
        parts = sorted(one / base for one, base in zip(costs[way], costs["none"], strict=True))
        middle, typical = statistics.median(parts), statistics.median(costs[way])
        span = f"({parts[0]:.3f} to {parts[-1]:.3f})"
        print(f"{what}, {way:6}: {typical:.3f} ms a sentence, {middle:.3f} of none {span}")


def unflagged(client: triton.InferenceServerClient, texts: Sequence[str], count: int) -> list[str]:
    """Sentences whose greedy translations have no flag, each into the language of its place."""
    found = all_of(client, texts, beam_size=1)
    pools: list[list[str]] = [[] for _ in CODES]
    for i, (text, one) in enumerate(zip(texts, found, strict=True)):
        if not one[2]:
            pools[i % len(CODES)].append(text)
    print(f"{sum(map(len, pools))} of {len(texts)} clean sentences have no flag")
    return [pools[i % len(CODES)][i // len(CODES)] for i in range(count)]


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
    drawn = [draw(rng, rng.choice(templates), values)["eng"] for _ in range(2 * args.clean)]
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="text"))
        judge = load_core().Judge(
            (Path(folder) / "demo" / "1" / "model" / FILE_NAME).read_text(encoding="utf-8")
        )
        with TritonServer(ServerOptions([Path(folder)])) as server:
            client = triton.InferenceServerClient(server.grpc_url)
            flagged = measure_change(client, judge, odd)
            good = unflagged(client, drawn, args.clean)
            process = psutil.Process(server.process.pid)
            measure_cost(client, process, good, args.rounds, "none flagged")
            mixed = list(good)
            step = round(1 / args.flagged)
            for place in range(0, len(mixed), step):
                # The language is that of the place, which decides whether it is flagged.
                fits = [i for i in flagged if i % len(CODES) == place % len(CODES)]
                mixed[place] = odd[rng.choice(fits)]["text"]
            measure_cost(client, process, mixed, args.rounds, f"{100 * args.flagged:g} % flagged")


if __name__ == "__main__":
    main()
