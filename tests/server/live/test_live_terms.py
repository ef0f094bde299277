# SPDX-License-Identifier: Apache-2.0
"""ct2-live with terms: names that the demo model does not know, in each mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import TranslationClient
from ct2_triton.live import LiveOptions, LiveTranslator
from ct2_triton.live.options import Mode
from ct2_triton.terms import Terms
from server.live.conftest import growing
from support.commands import run

pytestmark = pytest.mark.server

SAID = "Penalty for Quixolab!"


def stdio(command: list[str], *arguments: str) -> tuple[dict[str, str], str]:
    """Gives the finals by language, and what is said of them."""
    lines = [
        json.dumps({"segment": one.segment, "text": one.text, "final": one.final})
        for one in growing("1", SAID)
    ]
    done = run(*command, "--stdio", "--newest", *arguments, code=None, text="\n".join(lines))
    captions: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["target"]: one["transcript"] for one in captions if one["final"]}, done.stderr


def test_an_event_has_terms_for_all_languages_and_for_one(
    command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "de.tsv"
    file.write_text("Quixolab\tQuix AG\n")
    plain, _ = stdio(command)
    assert not any("Quix" in text for text in plain.values())
    kept, said = stdio(command, "--keep", "Quixolab", "--glossary", f"de={file}")
    assert kept == {"deu_Latn": "Elfmeter für Quix AG!", "fra_Latn": "Penalty pour Quixolab !"}
    assert said == ""


def test_a_final_that_loses_a_term_is_told(command: list[str]) -> None:
    """Terms that no placeholder brings through: the next final has them."""
    lost = " ".join(f"<dnt>Quix{letter}</dnt>" for letter in "abcdefghi")
    updates = [
        {"segment": "1", "text": f"Penalty for {lost}!", "final": True},
        {"segment": "2", "text": "Penalty for <dnt>Quixolab!", "final": True},
        {"segment": "3", "text": SAID, "final": True},
    ]
    line = [*command, "--stdio", "--keep", "Quixolab", "--to", "de"]
    done = run(*line, code=None, text="\n".join(map(json.dumps, updates)))
    assert "1, deu_Latn: lost 'Quixa', 'Quixb'" in done.stderr
    finals = {one["segment"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert "has no </dnt>" in finals["2"]["error"]
    assert finals["3"]["transcript"] == "Elfmeter für Quixolab!"


@pytest.mark.parametrize(
    ("file", "said"), [("es=x.tsv", "es is not in --to"), ("x.tsv", "cannot read the glossary")]
)
def test_a_glossary_that_cannot_be_is_said(command: list[str], file: str, said: str) -> None:
    assert said in run(*command, "--stdio", "--glossary", file, code=1, text="").stderr


@pytest.mark.parametrize("mode", ["final", "steady", "append"])
async def test_a_term_survives_in_each_mode_while_a_segment_grows(
    client: TranslationClient, mode: Mode
) -> None:
    options = LiveOptions(mode=mode, min_interval_ms=0, source="newest", mask_words=0)

    async def spoken():  # noqa: ANN202
        for update in growing("1", SAID):
            yield update

    live = LiveTranslator(
        client, source="en", targets="de", options=options, terms=Terms(["Quixolab"])
    )
    captions = [caption async for caption in live.run(spoken())]
    assert captions[-1].committed == captions[-1].transcript == "Elfmeter für Quixolab!"
