# SPDX-License-Identifier: Apache-2.0
"""Measures how often tags inside of a sentence find their words (docs/terms.md).

    python benchmarks/measure_html.py

Puts tags around words of held-out sentences of the demo's grammar, one, two or nested ones. A
sentence counts as whole if its translation without tags is the translation of its text; otherwise
its pieces were translated separately. Needs `pip install 'ct2-triton[server,train]'`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo_model"))

from ct2_triton.client import TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer
from ct2_triton.terms import translate_html
from train_demo.corpus import held_out_sentences
from train_demo.grammar import read_grammar

LANGUAGES = ["de", "fr", "es", "it", "pt", "nl"]
_TAG = re.compile(r"<[^>]*>")


def _name(words: list[str], rng: random.Random) -> int | None:
    """Finds a word with a capital or a digit that does not begin the sentence."""
    found = [i for i in range(1, len(words)) if words[i][0].isupper() or words[i][0].isdigit()]
    return rng.choice(found) if found else None


def one_name(words: list[str], rng: random.Random) -> list[str]:
    at = _name(words, rng)
    return words if at is None else [*words[:at], f"<b>{words[at]}</b>", *words[at + 1 :]]


def one_word(words: list[str], rng: random.Random) -> list[str]:
    at = rng.randrange(len(words))
    return [*words[:at], f"<b>{words[at]}</b>", *words[at + 1 :]]


def nested(words: list[str], rng: random.Random) -> list[str]:
    at = _name(words, rng)
    if at is None:
        return words
    inner = f"<a href=x>{words[at - 1]} <b>{words[at]}</b></a>"
    return [*words[: at - 1], inner, *words[at + 1 :]]


def around(words: list[str], _: random.Random) -> list[str]:
    return [f"<a href=x><b>{' '.join(words)}</b></a>"]


WAYS = {
    "`<b>` around a name or number": one_name,
    "`<b>` around any word": one_word,
    "`<a>` around two words, `<b>` around the second": nested,
    "`<a><b>` around all": around,
}


async def measure(client: TranslationClient, texts: list[str]) -> None:
    """Prints a line for each way."""
    print(f"| tags | {' | '.join(LANGUAGES)} |\n|---|{'---|' * len(LANGUAGES)}")
    for name, way in WAYS.items():
        rng = random.Random(21)
        tagged = [" ".join(way(text.split(), rng)) for text in texts]
        tagged = [text for text in tagged if "<" in text]
        shares = []
        for language in LANGUAGES:
            whole = 0
            for text in tagged:
                found = await translate_html(client, text, source="en", target=language)
                if _TAG.findall(found) != _TAG.findall(text):
                    raise AssertionError(f"{text!r} became {found!r}")
                plain = await client.translate(_TAG.sub("", text), source="en", targets=language)
                whole += _TAG.sub("", found) == plain.text
            shares.append(f"{100 * whole / len(tagged):.0f} %")
        print(f"| {name} | {' | '.join(shares)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="sentences")
    parser.add_argument("--model", default="demo-text", help="demo takes ids, demo-text takes text")
    args = parser.parse_args()
    sentences = held_out_sentences(read_grammar(), args.count, seed=21)
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="both"))
        with TritonServer(ServerOptions([Path(folder)])) as server:

            async def run() -> None:
                async with TranslationClient(
                    server.grpc_url, args.model, repository=folder
                ) as client:
                    await measure(client, [sentence.texts["eng"] for sentence in sentences])

            asyncio.run(run())


if __name__ == "__main__":
    main()
