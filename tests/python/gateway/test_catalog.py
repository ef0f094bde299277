# SPDX-License-Identifier: Apache-2.0
"""Languages by LibreTranslate's codes, of models of every kind."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ct2_triton.errors import ClientError
from ct2_triton.gateway.catalog import Catalog, Route, read_catalog
from ct2_triton.prepare.languages import with_aliases
from ct2_triton.prepared_model import Language, TokenRules

BASE = TokenRules.read(
    Path(__file__).parents[3] / "python" / "ct2_triton" / "demo_model"
)  # any will do: only its languages are read


def rules(languages: list[Language], *, required: bool) -> TokenRules:
    tags = {language.code: language.code.replace("_", "-") for language in languages}
    named = with_aliases(languages, tags)
    return replace(BASE, languages=named, source_required=required, target_required=required)


def many(*codes: str) -> TokenRules:
    return rules([Language(code) for code in codes], required=True)


def pair(source: str, target: str) -> TokenRules:
    both = [Language(source, target=False), Language(target, source=False)]
    return rules(both, required=False)


def test_nllb_codes_become_those_of_libretranslate() -> None:
    catalog = Catalog({"m": many("eng_Latn", "zho_Hans", "zho_Hant", "ace_Arab", "nob_Latn")})
    names = {code: spoken.name for code, spoken in catalog.languages.items()}
    assert names == {
        "en": "English",
        "zh-Hans": "Chinese (Simplified)",
        "zh-Hant": "Chinese (Traditional)",
        "ace": "Acehnese",
        "nb": "Norwegian Bokmål",
    }
    assert catalog.languages["en"].routes["zh-Hant"] == Route("m", "eng_Latn", "zho_Hant")
    for name, code in (("zh", "zh-Hans"), ("zh-TW", "zh-Hant"), ("NO", "nb"), ("en-US", "en")):
        found = catalog.find(name)
        assert found is not None
        assert found.code == code
    assert catalog.find("xx") is None
    assert catalog.find("  en  ") is catalog.languages["en"]
    assert catalog.find("en" + " " * 34) is None  # no tag is that long


def test_an_english_name_is_nobodys_code() -> None:
    """Ga's name is the code of Irish, and Fon's and Mon's are their own codes."""
    catalog = Catalog({"m": many("eng_Latn", "gaa_Latn", "gle_Latn", "fon_Latn", "mnw_Mymr")})
    assert set(catalog.languages) == {"en", "gaa", "ga", "fon", "mnw"}
    for name, code in (("GA", "ga"), ("Fon", "fon"), ("mon", "mnw"), ("irish", "ga")):
        found = catalog.find(name)
        assert found is not None
        assert found.code == code


def test_a_model_that_was_prepared_with_a_name_like_a_code() -> None:
    old = Language("gaa_Latn", aliases=("Ga", "gaa"))
    catalog = Catalog({"m": replace(BASE, languages=(Language("eng_Latn", aliases=("en",)), old))})
    assert {code: one.name for code, one in catalog.languages.items()} == {"en": "en", "gaa": "Ga"}


def test_models_of_a_pair_are_put_together_and_the_first_counts() -> None:
    catalog = Catalog({"a": pair("en", "de"), "b": pair("de", "en"), "c": many("en", "de", "fr")})
    english = catalog.languages["en"]
    assert english.routes["de"] == Route("a", None, None)  # it has no choice
    assert english.routes["fr"] == Route("c", "en", "fr")
    assert catalog.languages["de"].routes["en"] == Route("b", None, None)
    alone = Catalog({"a": pair("en", "de")})
    assert alone.sources == ["en"]
    assert alone.languages["de"].targets == ["de"]


def test_what_has_no_languages_says_so(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="'m' does not say which languages"):
        Catalog({"m": rules([Language("de", source=False)], required=False)})
    with pytest.raises(ClientError, match="nowhere"):
        read_catalog(["nowhere-text"], tmp_path)
    with pytest.raises(ClientError, match="of one model, and 2 are named"):
        read_catalog(["a", "b"], tmp_path, tmp_path)


def calls_of_a_start(languages: int) -> int:
    """Counts the calls of Python functions while a catalog of so many languages is made."""
    named = many(*(f"q{chr(97 + i // 26)}{chr(97 + i % 26)}_Latn" for i in range(languages)))
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert len(Catalog({"m": named}).sources) == languages
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_of_a_start_grows_with_the_languages_not_with_their_pairs() -> None:
    assert calls_of_a_start(200) < 3 * calls_of_a_start(100)


def test_names_are_looked_up_when_they_are_asked_for() -> None:
    program = (
        "import sys; from pathlib import Path; from ct2_triton.gateway.catalog import read_catalog;"
        "found = read_catalog(['demo'], tokenizer=Path(sys.argv[1]));"
        "assert len(found.languages) > 2 and 'langcodes' not in sys.modules;"
        "print(found.languages['de'].name)"
    )
    folder = Path(__file__).parents[3] / "python" / "ct2_triton" / "demo_model"
    command = [sys.executable, "-c", program, str(folder)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"German\n"
