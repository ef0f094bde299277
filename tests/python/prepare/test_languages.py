# SPDX-License-Identifier: Apache-2.0
"""The names by which people ask for a language lead to the right token, or to an error."""

from __future__ import annotations

import dataclasses
import re

import langcodes
import pytest
from langcodes.data_dicts import LANGUAGE_ALPHA3, MACROLANGUAGES

from ct2_triton.errors import UnknownLanguageError
from ct2_triton.prepare.families.marian import Marian
from ct2_triton.prepare.languages import with_aliases
from ct2_triton.prepared_model import Language, TokenRules
from python.prepare.conftest import Prepared

# Codes that ISO 639-1 had once.
WITHDRAWN = {"in", "iw", "ji", "jw", "mo", "sh", "bh"}


def target_code(rules: TokenRules, name: str) -> str:
    language = rules.target_language(name)
    assert language is not None
    return language.code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("deu_Latn", "deu_Latn"),
        ("deu-latn", "deu_Latn"),
        ("de", "deu_Latn"),
        ("DEU", "deu_Latn"),
        ("de-AT", "deu_Latn"),
        ("en-US", "eng_Latn"),
        ("es-419", "spa_Latn"),
        ("pt_BR", "por_Latn"),
        ("zh", "zho_Hans"),
        ("zh-CN", "zho_Hans"),
        ("zh-Hant", "zho_Hant"),
        ("zh-TW", "zho_Hant"),
        ("zh-HK", "zho_Hant"),
        ("cmn", "zho_Hans"),
        ("yue", "yue_Hant"),
        ("ar", "arb_Arab"),
        ("arz", "arz_Arab"),
        ("fa", "pes_Arab"),
        ("fas", "pes_Arab"),
        ("fa-AF", "prs_Arab"),
        ("no", "nob_Latn"),
        ("nn", "nno_Latn"),
        ("ms", "zsm_Latn"),
        ("lv", "lvs_Latn"),
        ("sw", "swh_Latn"),
        ("sq", "als_Latn"),
        ("az", "azj_Latn"),
        ("ku", "kmr_Latn"),
        ("ckb", "ckb_Arab"),
        ("ak", "aka_Latn"),
        ("tw", "twi_Latn"),
        ("ks", "kas_Arab"),
        ("ks-Deva", "kas_Deva"),
        ("tl", "tgl_Latn"),
        ("fil", "tgl_Latn"),
        ("iw", "heb_Hebr"),
        ("sat_Olck", "sat_Beng"),
        ("yi", "ydd_Hebr"),
        ("or", "ory_Orya"),
        ("mn", "khk_Cyrl"),
        ("ps", "pbt_Arab"),
        ("pus", "pbt_Arab"),
        ("qu", "quy_Latn"),
        ("ff", "fuv_Latn"),
        ("kr", "knc_Latn"),
        ("kr-Arab", "knc_Arab"),
        ("az-IR", "azb_Arab"),
        ("az-AZ", "azj_Latn"),
        ("ku-LB", "ckb_Arab"),
        ("pa-IN", "pan_Guru"),
        ("uz-UZ", "uzn_Latn"),
        ("zho_MO", "zho_Hant"),
        ("zh-SG", "zho_Hans"),
        ("German", "deu_Latn"),
        ("ger", "deu_Latn"),
        ("Chinese", "zho_Hans"),
        ("chi", "zho_Hans"),
        ("Arabic", "arb_Arab"),
        ("norwegian", "nob_Latn"),
        ("Norwegian Nynorsk", "nno_Latn"),
    ],
)
def test_names_of_nllb_languages(prepared: Prepared, name: str, code: str) -> None:
    assert target_code(prepared("nllb").rules, name) == code


@pytest.mark.parametrize(
    ("family", "name", "script", "nearest"),
    [
        ("mbart50", "zh-TW", "Hant", "zh_CN"),
        ("mbart50", "zh_HK", "Hant", "zh_CN"),
        ("m2m100", "zho-TW", "Hant", "zh"),
        ("nllb", "pa-PK", "Arab", "pan_Guru"),
        ("nllb", "uz-AF", "Arab", "uzn_Latn"),
        ("nllb", "uzb_CN", "Cyrl", "uzn_Latn"),
        ("nllb", "mn-CN", "Mong", "khk_Cyrl"),
    ],
)
def test_a_region_of_another_script_is_not_dropped(
    prepared: Prepared, family: str, name: str, script: str, nearest: str
) -> None:
    rules = prepared(family).rules
    with pytest.raises(UnknownLanguageError, match=f"script {script}, .*nearest: {nearest}"):
        rules.target_language(name)
    assert target_code(rules, name[:3].rstrip("-_")) == nearest


@pytest.mark.parametrize(("family", "least"), [("nllb", 127), ("m2m100", 90), ("mbart50", 50)])
def test_every_code_of_iso_639_1_that_a_model_has_is_known(
    prepared: Prepared, family: str, least: int
) -> None:
    """ISO 639's own tables say which: a language of the model, or the macrolanguage of one."""
    rules = prepared(family).rules
    spoken = {re.split("[-_]", entry.code)[0] for entry in rules.languages} - {"ns"}  # is no code
    alpha3 = {langcodes.Language.get(code).to_alpha3() for code in spoken}
    of_macro = {macro for code, macro in MACROLANGUAGES.items() if code in alpha3}
    codes = {
        code
        for code, long in LANGUAGE_ALPHA3.items()
        if len(code) == 2 and (long in alpha3 or code in of_macro)
    } - WITHDRAWN
    assert len(codes) >= least
    for code in codes:
        assert target_code(rules, code)
        assert target_code(rules, code) == target_code(rules, LANGUAGE_ALPHA3[code])


def test_a_language_with_a_code_of_its_own_is_no_other_one(prepared: Prepared) -> None:
    """Indonesian is in the macrolanguage Malay, which mBART-50 does not have."""
    assert target_code(prepared("mbart50").rules, "id") == "id_ID"
    with pytest.raises(UnknownLanguageError):
        prepared("mbart50").rules.target_language("ms")


@pytest.mark.parametrize("name", ["arb_Latn", "min_Arab", "sr-Latn", "zz", "xx_Latn", "", "<s>"])
def test_names_without_a_token_are_errors_and_never_unk(prepared: Prepared, name: str) -> None:
    """`convert_tokens_to_ids` gives <unk> for the first two, FLORES names, and "works"."""
    with pytest.raises(UnknownLanguageError, match=r"; nearest: |; it has \d+, such as "):
        prepared("nllb").rules.target_language(name)


def test_the_error_names_the_nearest_codes(prepared: Prepared) -> None:
    rules = prepared("nllb").rules
    with pytest.raises(UnknownLanguageError, match="arb_Arab"):
        rules.target_language("arb_Latn")
    with pytest.raises(UnknownLanguageError, match="deu_Latn"):
        rules.source_language("deu_Ltn")
    with pytest.raises(UnknownLanguageError, match="needs a target language"):
        rules.target_language(None)


def test_no_name_of_a_model_means_two_languages(prepared: Prepared) -> None:
    for family in ("nllb", "m2m100", "mbart50", "marian", "marian-pair", "t5", "madlad"):
        owner: dict[str, str] = {}
        for entry in prepared(family).rules.languages:
            for name in (entry.code, *entry.aliases):
                folded = name.lower().replace("_", "-")
                assert owner.setdefault(folded, entry.code) == entry.code


def test_every_language_has_ids_of_its_own_token(prepared: Prepared) -> None:
    for family, count in (("nllb", 202), ("m2m100", 100), ("mbart50", 52)):
        rules = prepared(family).rules
        assert len(rules.languages) == count
        ids = {entry.target_prefix_ids for entry in rules.languages}
        assert len(ids) == count
        assert all(len(entry) == 1 and entry[0] != rules.unk_id for entry in ids)
        assert all(entry.source_ids == entry.target_prefix_ids for entry in rules.languages)
        assert {entry[0] for entry in ids} <= set(rules.special_ids)


@pytest.mark.parametrize(
    ("family", "name", "code"),
    [
        ("m2m100", "de", "de"),
        ("m2m100", "deu", "de"),
        ("m2m100", "deu_Latn", "de"),
        ("m2m100", "zho_Hans", "zh"),
        ("m2m100", "zh-CN", "zh"),
        ("m2m100", "nso", "ns"),
        ("m2m100", "nb", "no"),
        ("m2m100", "en-GB", "en"),
        ("mbart50", "de", "de_DE"),
        ("mbart50", "de-DE", "de_DE"),
        ("mbart50", "deu_Latn", "de_DE"),
        ("mbart50", "en", "en_XX"),
        ("mbart50", "zh", "zh_CN"),
        ("mbart50", "pt-BR", "pt_XX"),
        ("marian", "fr", "fra"),
        ("marian", "fra_Latn", "fra"),
        ("marian-pair", "deu_Latn", "de"),
        ("madlad", "fra", "fr"),
        ("t5", "deu", "de"),
    ],
)
def test_names_of_other_families(prepared: Prepared, family: str, name: str, code: str) -> None:
    assert target_code(prepared(family).rules, name) == code


def marian_languages(source_lang: str, target_lang: str, *tokens: str) -> dict[str, Language]:
    """The languages of a Marian model with this pair and these tokens, by code."""

    class Tokenizer:
        def __init__(self) -> None:
            self.source_lang, self.target_lang = source_lang, target_lang

        def get_vocab(self) -> dict[str, int]:
            return {token: i for i, token in enumerate(["</s>", "a", *tokens])}

    return {entry.code: entry for entry in Marian().languages(Tokenizer(), {})}  # type: ignore[arg-type]


def test_marian_pairs_and_groups() -> None:
    assert {code: (e.source, e.target) for code, e in marian_languages("en", "de").items()} == {
        "en": (True, False),
        "de": (False, True),
    }
    assert set(marian_languages("roa", "en")) == {"en"}  # a group of source languages
    assert set(marian_languages("en", "roa", ">>fra<<", ">>por_BR<<")) == {"en", "fra", "por_BR"}
    assert set(marian_languages("ROMANCE", "mul")) == set()


def test_a_language_on_both_sides_of_a_marian_model_is_one() -> None:
    found = marian_languages("en", "mul", ">>eng<<", ">>deu<<")
    assert {code: (e.source, e.target) for code, e in found.items()} == {
        "eng": (True, True),
        "deu": (False, True),
    }
    assert found["eng"].target_source_ids == (2,)


def test_a_model_that_does_not_tell_sources_apart_takes_any_name(prepared: Prepared) -> None:
    rules = dataclasses.replace(
        prepared("marian-pair").rules, languages=tuple(marian_languages("roa", "en").values())
    )
    assert rules.source_language("fra") is None
    with pytest.raises(UnknownLanguageError):
        rules.target_language("fra")


def test_codes_that_are_no_language_tags_have_no_aliases() -> None:
    made = with_aliases([Language("de"), Language("x"), Language("ab-9-c")], {"de": "de", "x": "x"})
    assert [bool(entry.aliases) for entry in made] == [True, False, False]
    assert [entry.name for entry in made] == ["German", "", ""]
    tags = {"ace_Arab": "ace-Arab", "ace_Latn": "ace-Latn"}
    made = with_aliases([Language(code) for code in tags], tags)
    assert [entry.name for entry in made] == ["Acehnese (Arabic)", "Acehnese"]
    made = with_aliases([Language("odd")], {"odd": "d-e-f-g-toolongsubtag"})
    assert made[0].aliases == ()


def test_sides_are_kept_apart(prepared: Prepared) -> None:
    rules = prepared("marian-pair").rules
    assert rules.source_language("eng") is not None
    with pytest.raises(UnknownLanguageError, match="no source language 'de'"):
        rules.source_language("de")
    with pytest.raises(UnknownLanguageError, match="no target language 'en'"):
        rules.target_language("en")
    assert rules.source_language(None) == rules.source_language("en")  # the only one
    assert rules.target_language(None) == rules.target_language("de")
