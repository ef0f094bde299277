# SPDX-License-Identifier: Apache-2.0
"""Measures which kinds of placeholders bring a term through the demo model (docs/terms.md).

    python benchmarks/measure_terms.py

Takes held-out sentences of the demo's grammar that have a name, and puts a name that the model
has never seen in its place. A term survives where its placeholder comes back exactly once. The
name kinds are names of the grammar. Needs `pip install 'ct2-triton[server,train]'`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo_model"))

from ct2_triton.client import TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.shipped import FOLDER
from ct2_triton.prepared_model import TokenRules
from ct2_triton.serve import ServerOptions, TritonServer
from ct2_triton.terms import DEFAULT_KINDS, translate_terms
from ct2_triton.terms.finding import Terms, TermText
from ct2_triton.terms.placeholders import KINDS, mark, restore
from train_demo.corpus import held_out_sentences
from train_demo.grammar import read_grammar

TERM = "Quixolab"
LANGUAGES = ["de", "fr", "es", "it", "pt", "nl"]
NAMES = {
    "a team": ["Castelmar", "Valmora", "Rocabella"],
    "a show": ["Prisma", "Quorum", "Mosaico"],
    "a town": ["Berlin", "Madrid", "Lisbon"],
}


def prepared_kinds() -> tuple[str | tuple[str, ...], ...]:
    return TokenRules.read(FOLDER).placeholders or ()


def sentences(count: int) -> list[TermText]:
    """Sentences with a name that is the same in all languages, which becomes the term."""
    grammar = read_grammar()
    templates = {template.id: template for template in grammar.templates}
    found = []
    for sentence in held_out_sentences(grammar, 20 * count, seed=21):
        names = {
            value.forms["eng"]["nom"]
            for kind in templates[sentence.template].kinds.values()
            for value in kind.values
            if len({forms.get("nom") for forms in value.forms.values()}) == 1
        }
        inside = [n for n in names if all(text.count(n) == 1 for text in sentence.texts.values())]
        if inside:
            name = max(inside, key=len)
            found.append(Terms([TERM]).find(sentence.texts["eng"].replace(name, TERM)))
    return found[:count]


async def measure(client: TranslationClient, texts: list[TermText]) -> None:
    """Prints a line for each kind."""

    async def survive(kind: object) -> list[float]:
        marks = [mark(text, kind) for text in texts]  # type: ignore[arg-type]
        asked = [one.text for one in marks if one]
        rows = await client.translate(asked, source="en", targets=LANGUAGES)
        return [
            100 * sum(
                restore(text, one, row[i].text) is not None
                for text, one, row in zip(texts, marks, rows, strict=True)
                if one
            ) / len(texts)
            for i in range(len(LANGUAGES))
        ]  # fmt: skip

    async def all_in_turn(kinds: object) -> list[float]:
        rows = [
            await translate_terms(
                client, text.text, source="en", targets=LANGUAGES, keep=[TERM],
                placeholders=kinds,  # type: ignore[arg-type]
            )
            for text in texts
        ]  # fmt: skip
        return [100 * sum(not row[i].failed for row in rows) / len(texts) for i in range(6)]

    print(f"| kind | {' | '.join(LANGUAGES)} |\n|---|{'---|' * len(LANGUAGES)}")
    lines = {"none": all_in_turn(())}
    lines |= {f"`{kind}`": survive(kind) for kind in KINDS}
    lines |= {f"{name}: {', '.join(names)}": survive(names) for name, names in NAMES.items()}
    lines["what `ct2-prepare` finds"] = survive(prepared_kinds()[0])
    lines["defaults in turn"] = all_in_turn(DEFAULT_KINDS)
    lines["names in turn"] = all_in_turn(list(NAMES.values()))
    for name, shares in lines.items():
        print(f"| {name} | {' | '.join(f'{share:.0f} %' for share in await shares)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="sentences")
    args = parser.parse_args()
    texts = sentences(args.count)
    print(f"{len(texts)} sentences, such as: {texts[0].text}\n")
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="both"))
        with TritonServer(ServerOptions([Path(folder)])) as server:

            async def run() -> None:
                async with TranslationClient(server.grpc_url, "demo-text") as client:
                    await measure(client, texts)

            asyncio.run(run())


if __name__ == "__main__":
    main()
