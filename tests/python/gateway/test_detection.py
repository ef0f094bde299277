# SPDX-License-Identifier: Apache-2.0
"""Which language a text is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ct2_triton.gateway.catalog import read_catalog
from ct2_triton.gateway.detection import Detection, Detector, detector_of

TEXTS = {
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "en": "All human beings are born free and equal in dignity and rights.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "zh-Hans": "人人生而自由,在尊严和权利上一律平等。",
}
NAMES = {"zh": "zh-Hans"}


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(list(TEXTS), lambda name: NAMES.get(name, name))


def test_only_languages_of_the_models_are_found(detector: Detector) -> None:
    assert detector.languages == sorted(TEXTS)
    for language, text in TEXTS.items():
        assert detector.detect(text)[0].language == language
    dutch = "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren."
    assert detector.detect(dutch)[0].language in TEXTS


# Examples of LibreTranslate's documents, of dictionaries, and what people type to try a page.
FEW_WORDS = {
    "de": ["Danke", "Guten Tag", "Abbrechen", "Wo ist der Bahnhof?"],
    "en": ["Hello", "Hello World", "Hello world!", "good morning", "Yes", "Cancel"],
    "es": ["Hola", "Gracias", "Buenos días", "¿Cómo estás?"],
    "fr": ["Bonjour!", "Merci", "Bonne nuit", "Où est la gare ?"],
    "it": ["Grazie", "Buongiorno", "Ciao a tutti", "Dov'è la stazione?"],
    "nl": ["Dank je", "Goedemorgen", "Annuleren", "Hoe gaat het?"],
    "pt": ["Obrigado", "Bom dia", "Não", "Onde fica a estação?"],
}


def test_a_few_words_are_enough() -> None:
    detector = Detector(list(FEW_WORDS), lambda name: name)
    for language, texts in FEW_WORDS.items():
        found = {text: detector.detect(text)[0].language for text in texts}
        assert found == dict.fromkeys(texts, language)


def test_languages_with_and_without_a_word_list() -> None:
    texts = {
        "et": "Tere hommikust, kuidas läheb?",  # it has no word list
        "ja": "おはようございます",  # without spaces
        "tl": "Magandang umaga",  # whose list goes by another code
        "ru": "Привет",
        "zh-Hans": "你好",
    }
    detector = Detector([*TEXTS, *texts, "fi"], lambda name: NAMES.get(name, name))
    assert {language: detector.detect(text)[0].language for language, text in texts.items()} == {
        language: language for language in texts
    }


async def test_short_texts_are_judged_with_the_others(detector: Detector) -> None:
    found = await detector.sources_of([TEXTS["de"], "Taxi", TEXTS["fr"], TEXTS["de"]], list(TEXTS))
    assert [one.language for one in found] == ["de", "de", "fr", "de"]


def test_a_source_is_one_of_the_given_with_its_confidence_among_all(detector: Detector) -> None:
    assert detector.source_of(TEXTS["en"], ["en", "fr"]).confidence > 90
    other = detector.source_of(TEXTS["de"], ["fr", "en"])
    assert other.language in {"fr", "en"}
    assert other.confidence < 1
    assert detector.source_of("12 + 34", ["fr", "de"]) == Detection("fr", 0.0)


def test_nothing_to_go_by_is_no_confidence(detector: Detector) -> None:
    assert detector.detect("12 + 34") == [Detection("en", 0.0)]
    assert Detector(["xx"], lambda _: None).detect("Taxi") == [Detection("xx", 0.0)]


def test_long_and_odd_texts(detector: Detector) -> None:
    assert detector.detect(TEXTS["fr"] * 10_000)[0].language == "fr"
    for text in ("a", "'", "\x00a", "a'" * 5000, "é" * 5000, "🎉", "\u202e" * 10):
        assert all(0 <= one.confidence <= 100 for one in detector.detect(text))


def test_texts_in_languages_that_are_only_translated_into_are_known(tmp_path: Path) -> None:
    demo = Path(__file__).parents[3] / "python" / "ct2_triton" / "demo_model"
    catalog = read_catalog(["demo-text"], tmp_path, demo)
    assert catalog.sources == ["en"]
    detector = detector_of(catalog)
    assert detector.languages == ["de", "en", "es", "fr", "it", "nl", "pt"]
    assert detector.detect("Bonjour!")[0].language == "fr"
    assert detector.source_of("Bonjour!", catalog.sources).language == "en"
    assert detector.source_of("Bonjour!", catalog.sources).confidence < 10
