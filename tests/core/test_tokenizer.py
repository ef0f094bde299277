# SPDX-License-Identifier: Apache-2.0
"""The tokenizer in C++ against the Python client's: the same ids, texts and languages."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ct2_triton import _core
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import UnknownLanguageError
from support.fewer import fewer
from support.odd_texts import NOTHING, ODD_TEXTS
from support.tiny import tiny_checkpoint
from support.tokenizers import write_demo_tokenizer, write_tokenizer
from tiny_corpus import sentences
from tiny_models import TinyOptions

FAMILIES = ("nllb", "m2m100", "mbart50", "mbart25", "marian", "marian-pair", "t5", "madlad")
KINDS = (*FAMILIES, "demo", "nllb-bytes", "nllb-legacy")
ALPHABET = (
    "the river eats.  \u00a0\u3000\u200b\u200d▁éﬁ½日本कखع\u0301\u0085\t\n\0\x1f\ufffd👩🇩</s><unk>"
)


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("tokenizers")

    @cache
    def folder(kind: str) -> Path:
        if kind == "demo":
            return write_demo_tokenizer(root / kind)
        options = TinyOptions(byte_fallback=True, pieces=1500) if kind == "nllb-bytes" else None
        checkpoint = tiny_checkpoint(kind.split("-bytes")[0].split("-legacy")[0], options)
        if kind == "nllb-legacy":
            checkpoint = Path(shutil.copytree(checkpoint, root / "legacy-checkpoint"))
            file = checkpoint / "tokenizer_config.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "legacy_behaviour": True}))
        return write_tokenizer(checkpoint, root / kind)

    return folder


def corpus() -> list[str]:
    rng = random.Random(3)
    made = ["".join(rng.choices(ALPHABET, k=rng.randrange(1, 40))) for _ in range(400)]
    return [*sentences(200, seed=4), *ODD_TEXTS, *made]


def languages(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """Some pairs of names; empty where the model has none on that side."""
    entries = tokenizer.rules.languages
    sources = [entry.code for entry in entries if entry.source][:3] or [""]
    targets = [entry.code for entry in entries if entry.target][-3:] or [""]
    return [(source, target) for source in sources for target in targets]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_client(folder_of: Callable[[str], Path], kind: str) -> None:
    folder = folder_of(kind)
    ours, client = _core.Tokenizer(str(folder)), Tokenizer(folder, native=False)
    pairs = languages(client)
    for number, text in enumerate(corpus()):
        source, target = pairs[number % len(pairs)]
        language, (wanted,) = client.source(source or None), client.targets(target or None)
        encoded = client.encode(text)
        expected = client.rules.input_ids(encoded.ids, language, wanted)
        assert ours.source(text, source, target) == ([] if encoded.is_empty else expected), text
        assert ours.prefix(target) == client.rules.target_prefix(wanted)
        assert ours.prefix_length(target) == client.rules.prefix_length(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_the_client(folder_of: Callable[[str], Path], kind: str) -> None:
    folder = folder_of(kind)
    ours, client = _core.Tokenizer(str(folder)), Tokenizer(folder, native=False)
    rng = random.Random(2)
    ids = range(-1, client.rules.tokenizer_size + 3)
    rows = [list(client.encode(text).ids) for text in corpus()]
    rows += [rng.choices(ids, k=rng.randrange(1, 20)) for _ in range(600)]
    for row in rows:
        assert ours.text(row) == client.decode(row), row


@pytest.mark.parametrize("kind", FAMILIES)
def test_both_sides_of_a_tokenizer_split_like_the_client(
    folder_of: Callable[[str], Path], kind: str
) -> None:
    from ct2_triton.client.pieces import native_pieces, read_pieces
    from ct2_triton.prepared_model import TokenRules

    folder = folder_of(kind)
    rules = TokenRules.read(folder)
    for of_targets in (False, True):
        client = read_pieces(folder, rules, of_targets=of_targets, native=False)
        ours = native_pieces(folder, rules, of_targets=of_targets)
        assert ours is not None
        assert (ours.space_id, ours.text_ids) == (client.space_id, client.text_ids)
        for text in corpus():
            assert ours.encode(text) == client.encode(text), text


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_means_the_same_language(folder_of: Callable[[str], Path], kind: str) -> None:
    folder = folder_of(kind)
    ours, client = _core.Tokenizer(str(folder)), Tokenizer(folder, native=False)
    names = {name for entry in client.rules.languages for name in (entry.code, *entry.aliases)}
    names |= {"de-DE", "DE_de", " en ", "en-US", "es-419", "zh-TW", "zh-Hant", "xx", "-DE", "pa-PK"}
    assert len(names) > 5
    for name in sorted(names):
        for of_targets in (False, True):
            expected = _code(client, name, of_targets)
            if expected is None:
                with pytest.raises(_core.Error) as refused:
                    ours.language(name, of_targets=of_targets)
                assert refused.value.code == "invalid_argument"
                assert name in str(refused.value)
            else:
                assert ours.language(name, of_targets=of_targets) == expected, name


def _code(client: Tokenizer, name: str, of_targets: bool) -> str | None:
    """The client's answer; empty where it takes any name, None where it refuses."""
    try:
        found = client.targets(name)[0] if of_targets else client.source(name)
    except UnknownLanguageError:
        return None
    return found.code if found else ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deu_Lat", "deu_Latn"),
        ("de-XXXX", "deu_Latn"),
        ("arb_Latn", "arb_Arab"),
        ("", "this model needs a target language in target_languages; it has [0-9]+, such as"),
        ("q" * 10000, "the model has no target language"),
    ],
)
def test_an_unknown_language_names_the_nearest(
    folder_of: Callable[[str], Path], name: str, said: str
) -> None:
    ours = _core.Tokenizer(str(folder_of("nllb")))
    with pytest.raises(_core.Error, match=said) as refused:
        ours.prefix(name)
    assert len(str(refused.value)) < 400
    assert ours.prefix("de") == ours.prefix("deu_Latn") != []


def test_a_side_that_a_model_does_not_have_is_refused(folder_of: Callable[[str], Path]) -> None:
    """The demo translates from English alone."""
    ours = _core.Tokenizer(str(folder_of("demo")))
    with pytest.raises(_core.Error, match='no source language "de"; it has eng_Latn'):
        ours.source("good", "de", "fr")
    with pytest.raises(_core.Error, match='no target language "en"; it has deu_Latn, '):
        ours.source("good", "en", "en")
    assert ours.source("good", "en", "de")


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"\xff", 0),
        (b"ab\xc3(", 2),
        (b"cut \xe2\x82", 4),
        (b"\xed\xa0\x80 half a pair", 0),
        (b"x\xc0\x80", 1),
        (b"\xf4\x90\x80\x80", 0),
        (b"\xe0\x80\xaf", 0),
        (b"\xf0\x82\x82\xac", 0),
        (b"\x80", 0),
        (b"caf\xc3\xa9 \xbf", 6),
    ],
)
def test_text_that_is_no_utf8_is_refused_with_its_offset(
    folder_of: Callable[[str], Path], text: bytes, offset: int
) -> None:
    ours = _core.Tokenizer(str(folder_of("nllb")))
    assert _core.invalid_utf8(text) == offset
    with pytest.raises(UnicodeDecodeError) as python:
        text.decode()
    assert python.value.start == offset
    with pytest.raises(_core.Error, match=rf"byte 0x{text[offset]:02X} at offset {offset} "):
        ours.source(text, "en", "de")
    assert ours.source("good", "en", "de")


def test_utf8_is_python_s() -> None:
    rng = random.Random(1)
    pool = [
        "é".encode(),
        "日".encode(),
        "👩".encode(),
        b"a",
        b"\x80",
        b"\xed\xa0",
        b"\xf4",
        b"\xc1",
    ]
    for _ in range(5000):
        text = b"".join(rng.choices(pool, k=rng.randrange(6)))
        try:
            text.decode()
            expected = None
        except UnicodeDecodeError as error:
            expected = error.start
        assert _core.invalid_utf8(text) == expected, text


def test_nothing_is_nothing_and_needs_its_languages(folder_of: Callable[[str], Path]) -> None:
    ours = _core.Tokenizer(str(folder_of("nllb")))
    assert [ours.source(text, "en", "de") for text in NOTHING] == [[]] * len(NOTHING)
    with pytest.raises(_core.Error, match="no source language"):
        ours.source("", "xx", "de")


def test_threads_share_one(folder_of: Callable[[str], Path]) -> None:
    ours = _core.Tokenizer(str(folder_of("nllb")))
    texts = corpus()
    expected = [ours.source(text, "en", "de") for text in texts]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: [ours.source(text, "en", "de") for text in texts], range(8)))
    assert all(run == expected for run in runs)


def _without(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).unlink()


def _with(name: str, content: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes(content)


def _changed(name: str, old: bytes, new: bytes) -> Callable[[Path], Any]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new))

    return change


def _named(folder: Path) -> None:
    """A converted model whose vocabulary lacks the unknown token."""
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "sentencepiece.bpe.model").rename(folder / "sentencepiece.model")
    (folder / "shared_vocabulary.json").write_text('["a"]')
    rules = json.loads((folder / "languages.json").read_text())
    (folder / "languages.json").write_text(json.dumps({**rules, "family": "pieces", "unk_id": 5}))


def _of_family(name: str) -> Callable[[Path], Any]:
    def change(folder: Path) -> None:
        rules = json.loads((folder / "languages.json").read_text())
        (folder / "languages.json").write_text(json.dumps({**rules, "family": name}))

    return change


def _cut(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-7])


@pytest.mark.parametrize(
    ("family", "damage", "code", "said"),
    [
        ("nllb", _without("sentencepiece.bpe.model"), "unsupported", "send token ids"),
        ("t5", _without("spiece.model"), "unsupported", "send token ids"),
        ("m2m100", _without("vocab.json"), "not_found", r"vocab\.json"),
        ("marian", _without("target.spm"), "not_found", r"target\.spm"),
        ("nllb", _without("languages.json"), "not_found", r"languages\.json"),
        ("nllb", _with("languages.json", b"{}"), "invalid_argument", "prepare the model again"),
        ("nllb", _with("languages.json", b"["), "invalid_argument", "prepare the model again"),
        ("m2m100", _with("vocab.json", b"[1]"), "invalid_argument", "vocabulary"),
        ("nllb", _with("sentencepiece.bpe.model", b""), "invalid_argument", "no pieces"),
        (
            "nllb",
            _with("sentencepiece.bpe.model", b"\xff" * 99),
            "invalid_argument",
            "not a SentencePiece model",
        ),
        ("mbart50", _cut("sentencepiece.bpe.model"), "invalid_argument", "too early"),
        ("nllb", _of_family("nlb"), "invalid_argument", 'family "nlb".* not one of nllb, m2m100'),
        ("t5", _of_family(""), "invalid_argument", 'languages.json" names the family ""'),
        ("nllb", _named, "invalid_argument", "1 entries, and none for the unknown token 5"),
        (
            "nllb-bytes",
            _changed("sentencepiece.bpe.model", b"<0x41>", b"<0xZZ>"),
            "unsupported",
            "not written as <0x41>",
        ),
    ],
)
def test_folders_that_cannot_be_read_are_named(
    folder_of: Callable[[str], Path], tmp_path: Path, family: str, damage: Any, code: str, said: str
) -> None:
    folder = Path(shutil.copytree(folder_of(family), tmp_path / "copy"))
    damage(folder)
    with pytest.raises(_core.Error, match=said) as refused:
        _core.Tokenizer(str(folder))
    assert refused.value.code == code
    assert _core.Tokenizer(str(folder_of(family))).source("good", "en", "de")


@pytest.mark.parametrize("kind", ["demo", "nllb-bytes", "t5"])
def test_what_is_settled_is_the_start_of_any_text_that_follows(
    folder_of: Callable[[str], Path], kind: str
) -> None:
    """Any ids: rows of real texts, shuffled rows with half characters, and ids without text."""
    folder = folder_of(kind)
    ours, rng = _core.Tokenizer(str(folder)), random.Random(18)
    source, target = languages(Tokenizer(folder, native=False))[0]
    held_back = 0
    for text in rng.sample(corpus(), fewer(200)):
        ids = ours.source(text, source, target)
        if rng.random() < 0.5:
            rng.shuffle(ids)
        settled = [ours.settled_text(ids[:count]) for count in range(len(ids) + 1)]
        for count, start in enumerate(settled):
            assert ours.text(ids[:count]).startswith(start)
            assert all(later.startswith(start) for later in settled[count:])
            held_back += start != ours.text(ids[:count])
        assert ours.text(ids).startswith(settled[-1])
    assert (held_back > 0) == (kind == "nllb-bytes")


@pytest.mark.parametrize("kind", KINDS)
def test_source_pieces_are_found_in_their_text(folder_of: Callable[[str], Path], kind: str) -> None:
    folder = folder_of(kind)
    ours, client = _core.Tokenizer(str(folder)), Tokenizer(folder, native=False)
    source, target = languages(client)[0]
    text = " The river\teats  the old\u00a0boat. "
    found = ours.source_places(text.encode(), source, target)
    row = ours.source(text, source, target)
    assert len(found) <= len(row)
    parts = [text.encode()[slice(*place)].decode() for place in found]
    assert "".join(parts) == "".join(text.split())
    assert len(parts) > len(text.split())
    for other in corpus():
        given = other.encode()
        places = ours.source_places(given, source, target)
        assert all(0 <= begin <= end <= len(given) for begin, end in places)
        slices = [given[begin:end].decode() for begin, end in places]  # of whole characters
        assert "".join("".join(slices).split()) or not client.encode(other).ids


def test_pieces_of_other_characters_are_found_by_number(folder_of: Callable[[str], Path]) -> None:
    """NFKC writes wide letters as narrow ones, and one half as three characters."""
    ours = _core.Tokenizer(str(folder_of("nllb")))
    text = "ｔｈｅ ½ \u3000ｒiver"
    found = ours.source_places(text.encode(), "eng_Latn", "deu_Latn")
    parts = [part for begin, end in found if (part := text.encode()[begin:end].decode())]
    assert "½" in parts
    assert "".join(part for part in parts if part != "½") == "ｔｈｅｒiver"
