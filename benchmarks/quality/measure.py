# SPDX-License-Identifier: Apache-2.0
"""Measure the verdicts: precision and recall on held-out faults, false alarms on clean sentences.

Given translations are judged by the code of the backend, with the demo model's statistics, and with
the alignments of a server that is forced to generate them by a draft. The demo model's own come
with their verdicts from the server.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grammar_pairs import draw, read_grammar
from held_out_faults import digits

from ct2_triton.client import SyncTranslationClient, Translation
from ct2_triton.engine_library import load_core
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.quality import FILE_NAME
from ct2_triton.serve import ServerOptions, TritonServer

FLAGS = ("repeats", "uncovered", "invented", "values", "copied", "language", "length", "unsure")
TARGETS = ("deu", "fra", "spa", "ita", "por", "nld")
VALUE_KINDS = ("number_", "value_")  # of faults; the latter are URLs, addresses, placeholders
Flags = set[str]
Aligned = tuple[int, int, int, int]  # begin and end in the source, and in the translation


class Judge:
    """The backend's judge, with the statistics of a model."""

    def __init__(self, model: Path) -> None:
        self._judge = load_core().Judge((model / FILE_NAME).read_text(encoding="utf-8"))

    def flags(
        self, source: str, text: str, target: str, aligned: Sequence[Aligned] | None = None
    ) -> Flags:
        """What is raised for a translation into a language of `TARGETS`."""
        verdict = self._judge.judge(source, text, f"{target}_Latn", None, "eng_Latn", aligned)
        return set(verdict["flags"])


def aligned(client: SyncTranslationClient, row: Mapping[str, Any]) -> list[Aligned] | None:
    """Alignments of a given translation; None if the model does not generate its characters."""
    text = row["translation"]
    if not text.strip():
        return None
    found = client.translate(
        row["source"], source="en", targets=f"{row['target']}_Latn", draft=text, split="none",
        beam_size=1, draft_bias=0.9999, return_alignments=True, timeout_s=600,
    )  # fmt: skip
    if not found.text.startswith(text):
        return None
    end = len(text.encode())
    return [one for one in found.alignment_ranges or () if one[3] <= end]


def served(
    client: SyncTranslationClient, texts: Sequence[str], split: str = "sentences"
) -> list[Translation]:
    """The model's translations, each into the next language of `TARGETS`."""
    found: list[Any] = [None] * len(texts)
    for i, target in enumerate(TARGETS):
        call = {"source": "en", "targets": target, "split": split, "timeout_s": 600}
        found[i :: len(TARGETS)] = client.translate(texts[i :: len(TARGETS)], quality=True, **call)
    return found


def flags_of(translations: Iterable[Translation]) -> list[Flags]:
    """What the server raised for each."""
    return [set(one.verdict.flags) for one in translations if one.verdict is not None]


def lines(path: Path) -> list[dict[str, Any]]:
    """Objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure_faults(
    judge: Judge, client: SyncTranslationClient | None, rows: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Print precision and recall of each flag, and return the recall; `values` by kind, too.

    Without a client, `uncovered` and `invented` are not computed.
    """
    right, raised, wanted, met = (Counter[str]() for _ in range(4))
    clean = []
    for row in rows:
        spans = aligned(client, row) if client else None
        found = judge.flags(row["source"], row["translation"], row["target"], spans)
        raised.update(found)
        right.update(found & {*row["flags"], *row["may"]})
        names = [*row["flags"]]
        if "values" in names and row["kind"].startswith(VALUE_KINDS):
            names.append(f"values: {row['kind'].split('_')[0]}")
        wanted.update(names)
        met.update(name for name in names if name.split(":")[0] in found)
        if row["kind"].startswith("clean"):
            clean.append(found)
    for flag in (*FLAGS, *sorted(wanted.keys() - set(FLAGS))):
        recall, precision = share(met[flag], wanted[flag]), share(right[flag], raised[flag])
        print(f"{flag:14} recall {recall} of {wanted[flag]}, precision {precision}")
    report("held-out outputs that are clean", clean)
    return {flag: met[flag] / count for flag, count in wanted.items()} | {
        "clean": sum(map(bool, clean)) / max(1, len(clean))
    }


def measure_clean(judge: Judge, client: SyncTranslationClient, count: int, seed: int) -> None:
    """Print the false alarms on clean sentences: of right translations, and of the model's."""
    rng = random.Random(seed)
    templates, values = read_grammar(Path("demo_model/grammar"))
    drawn: dict[str, dict[str, str]] = {}
    while len(drawn) < count:
        texts = draw(rng, rng.choice(templates), values)
        drawn.setdefault(texts["eng"], texts)
    right = [texts[TARGETS[i % len(TARGETS)]] for i, texts in enumerate(drawn.values())]
    given = (
        judge.flags(source, text, TARGETS[i % len(TARGETS)])
        for i, (source, text) in enumerate(zip(drawn, right, strict=True))
    )
    report(f"right translations of {count:,} clean sentences", list(given))
    for split in ("none", "sentences"):
        found = served(client, [*drawn], split)
        flags = flags_of(found)
        report(f"the model's translations of them, split: {split}", flags)
        same = [
            "values" in raised and digits(one.text) == digits(text)
            for raised, one, text in zip(flags, found, right, strict=True)
        ]
        print(f"  values raised where the numbers are the right ones: {sum(same)}")


def measure_inputs(client: SyncTranslationClient, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print what is raised for the model's translations of odd inputs, by kind."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        kinds[row["kind"]].append(row["text"])
    for kind, texts in kinds.items():
        report(kind, flags_of(served(client, texts)))


def report(what: str, rows: Sequence[Flags]) -> None:
    """Print how many rows have each flag, and any."""
    counts = Counter(flag for flags in rows for flag in flags)
    each = [f"{flag} {share(counts[flag], len(rows))}" for flag in FLAGS if counts[flag]]
    print(f"{what}: {share(sum(map(bool, rows)), len(rows))} flagged; {', '.join(each)}")


def share(count: int, total: int) -> str:
    """A percentage."""
    return f"{100 * count / total:.2f} %" if total else "-"


def main() -> None:
    """Measure all that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=Path, required=True, help="JSON lines of held_out.py")
    parser.add_argument("--inputs", type=Path, required=True, help="JSON lines of held_out.py")
    parser.add_argument("--clean", type=int, default=10_000, help="sentences")
    parser.add_argument("--seed", type=int, default=3636, help="of the clean sentences")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="text"))
        judge = Judge(Path(folder) / "demo" / "1" / "model")
        with (
            TritonServer(ServerOptions([Path(folder)])) as server,
            SyncTranslationClient(server.grpc_url, "demo") as client,
        ):
            measure_faults(judge, client, lines(args.faults))
            measure_clean(judge, client, args.clean, args.seed)
            measure_inputs(client, lines(args.inputs))


if __name__ == "__main__":
    main()
