# SPDX-License-Identifier: Apache-2.0
"""Sentences for tiny models, made from word lists and a seed: nothing is downloaded.

The sentences look like four European languages and have the lengths of spoken captions. Invented
words are mixed in, so that a SentencePiece model trained on them can have over a thousand pieces.
"""

from __future__ import annotations

import random

_SUBJECTS = {
    "eng_Latn": (
        "the teacher",
        "my neighbour",
        "our doctor",
        "a young child",
        "the old sailor",
        "every student",
    ),
    "deu_Latn": (
        "der Lehrer",
        "meine Nachbarin",
        "unser Arzt",
        "ein kleines Kind",
        "der alte Seemann",
        "jede Schülerin",
    ),
    "fra_Latn": (
        "le professeur",
        "ma voisine",
        "notre médecin",
        "un jeune garçon",
        "la vieille dame",
        "chaque élève",
    ),
    "spa_Latn": (
        "el maestro",
        "mi vecina",
        "nuestro médico",
        "una niña pequeña",
        "el viejo marinero",
        "cada alumno",
    ),
}
_VERBS = {
    "eng_Latn": (
        "opened",
        "carried",
        "described",
        "forgot",
        "painted",
        "repaired",
        "noticed",
        "would like to see",
    ),
    "deu_Latn": (
        "öffnete",
        "trug",
        "beschrieb",
        "vergaß",
        "bemalte",
        "reparierte",
        "bemerkte",
        "möchte gern sehen",
    ),
    "fra_Latn": (
        "a ouvert",
        "a porté",
        "a décrit",
        "a oublié",
        "a peint",
        "a réparé",
        "a remarqué",
        "voudrait voir",
    ),
    "spa_Latn": (
        "abrió",
        "llevó",
        "describió",
        "olvidó",
        "pintó",
        "reparó",
        "notó",
        "quisiera ver",
    ),
}
_OBJECTS = {
    "eng_Latn": (
        "the green window",
        "a long letter",
        "two bicycles",
        "the harbour",
        "some warm bread",
        "her question",
    ),
    "deu_Latn": (
        "das grüne Fenster",
        "einen langen Brief",
        "zwei Fahrräder",
        "den Hafen",
        "warmes Brot",
        "ihre Frage",
    ),
    "fra_Latn": (
        "la fenêtre verte",
        "une longue lettre",
        "deux vélos",
        "le port",
        "du pain chaud",
        "sa question",
    ),
    "spa_Latn": (
        "la ventana verde",
        "una carta larga",
        "dos bicicletas",
        "el puerto",
        "pan caliente",
        "su pregunta",
    ),
}
_TAILS = {
    "eng_Latn": (
        "yesterday",
        "in the morning",
        "without saying a word",
        "because it rained",
        "near the river",
        "at 10:45",
    ),
    "deu_Latn": (
        "gestern",
        "am Morgen",
        "ohne ein Wort zu sagen",
        "weil es regnete",
        "nahe am Fluss",
        "um 10:45 Uhr",
    ),
    "fra_Latn": (
        "hier",
        "le matin",
        "sans dire un mot",
        "parce qu'il pleuvait",
        "près du fleuve",
        "à 10 h 45",
    ),
    "spa_Latn": (
        "ayer",
        "por la mañana",
        "sin decir nada",
        "porque llovía",
        "cerca del río",
        "a las 10:45",
    ),
}
_ONSETS = (
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "sch",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
)
_NUCLEI = ("a", "e", "i", "o", "u", "ä", "é", "ö", "ü", "ai", "ou")
_CODAS = ("", "", "n", "r", "s", "l", "t", "nd", "ck")

LANGUAGES: tuple[str, ...] = tuple(_SUBJECTS)

_GREETINGS = (
    "How is your day going?",
    "Wie läuft dein Tag?",
    "Comment se passe ta journée ?",
    "¿Cómo va tu día?",
    "Yes.",
    "No!",
    "Thank you very much.",
)


def invented_words(count: int, seed: int) -> list[str]:
    """Makes pronounceable words that exist in no language.

    Args:
        count: How many words, possibly with repetitions.
        seed: Equal seeds give equal words.

    Returns:
        The words, of one to three syllables.
    """
    rng = random.Random(seed)

    def syllable() -> str:
        return rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS)

    return ["".join(syllable() for _ in range(rng.randint(1, 3))) for _ in range(count)]


def sentence(rng: random.Random, language: str, words: list[str]) -> str:
    """Makes one sentence of one to three clauses.

    Args:
        rng: Source of randomness.
        language: One of `LANGUAGES`.
        words: Invented words to mix in; may be empty.

    Returns:
        The sentence, with its full stop or question mark.
    """
    clauses = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        parts = [_SUBJECTS, _VERBS, _OBJECTS] + ([_TAILS] if rng.random() < 0.6 else [])
        chosen = [rng.choice(part[language]) for part in parts]
        if words and rng.random() < 0.7:
            chosen.insert(
                rng.randint(1, len(chosen)), " ".join(rng.sample(words, rng.randint(1, 4)))
            )
        clauses.append(" ".join(chosen))
    text = ", ".join(clauses)
    return text[0].upper() + text[1:] + rng.choice((".", ".", ".", "?", "!"))


def sentences(count: int, seed: int = 0, languages: tuple[str, ...] = LANGUAGES) -> list[str]:
    """Makes a corpus.

    Args:
        count: How many sentences, some greetings included.
        seed: Equal seeds give equal sentences.
        languages: Languages to take turns with, of `LANGUAGES`.

    Returns:
        The sentences.
    """
    rng = random.Random(seed)
    words = invented_words(1500, seed)
    corpus = [sentence(rng, languages[i % len(languages)], words) for i in range(count)]
    corpus[: len(_GREETINGS)] = _GREETINGS[:count]
    return corpus
