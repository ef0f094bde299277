# SPDX-License-Identifier: Apache-2.0
"""--shortlist-from: which tokens a list has, what is recorded of it, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from ct2_triton import cli
from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import PrepareError, SettingError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepare.families import FAMILIES
from ct2_triton.prepare.options import ShortlistOptions
from ct2_triton.prepare.shortlist_text import belongs, letters, script_of, spells
from ct2_triton.prepare.writing import checksums
from ct2_triton.prepared_model import Language, PreparedModel, TokenRules
from support.prepared import prepare_tiny
from tiny_corpus import sentences

pytestmark = pytest.mark.usefixtures("short_proofs")

HOURS = range(20)
GERMAN = [f"Der Zug nach {c} fährt um {n} Uhr ab." for c in ("Bonn", "Köln") for n in HOURS]
FRENCH = [f"Le train pour {c} part à {n} heures." for c in ("Lyon", "Metz") for n in HOURS]
RUSSIAN = [f"Поезд номер {number} отправляется сегодня." for number in range(20)]


@pytest.fixture
def german(tmp_path: Path) -> Path:
    return write(tmp_path / "german.txt", GERMAN)


@pytest.fixture
def french(tmp_path: Path) -> Path:
    return write(tmp_path / "french.txt", FRENCH)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def demo(tmp_path: Path, *entries: str, **options: Any) -> PreparedModel:
    """The demo model with a shortlist; `size` and `licence` are those of the shortlist."""
    named = ("size", "licence", "union")
    kept = {name: options.pop(name) for name in named if name in options}
    shortlist = ShortlistOptions(entries, **kept)
    return prepare(PrepareOptions("demo", tmp_path / "repository", shortlist=shortlist, **options))


def tokens_of(model: PreparedModel) -> list[str]:
    """The always line of vmap.txt, which is all it has."""
    (line,) = (model.model_folder / "vmap.txt").read_text(encoding="utf-8").splitlines()
    key, tokens = line.split("\t")
    assert key == ""
    return tokens.split(" ")


def vocabulary(model: PreparedModel) -> list[str]:
    return list(json.loads((model.model_folder / "shared_vocabulary.json").read_text("utf-8")))


def parameters(model: PreparedModel) -> dict[str, str]:
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    text = (model.directory / "config.pbtxt").read_text(encoding="utf-8")
    message = text_format.Parse(text, ModelConfig())
    return {name: value.string_value for name, value in message.parameters.items()}


def ids(model: PreparedModel) -> set[int]:
    first = {token: i for i, token in reversed(list(enumerate(vocabulary(model))))}
    return {first[token] for token in tokens_of(model)}


def test_a_list_has_the_pieces_of_the_text_and_what_spells(tmp_path: Path, german: Path) -> None:
    model = demo(tmp_path, f"deu_Latn={german}")
    found, names = ids(model), vocabulary(model)
    pieces = read_pieces(model.tokenizer_folder, model.rules)
    # Every tenth different line is held out.
    counted = {i for n, line in enumerate(GERMAN) if n % 10 != 9 for i in pieces.encode(line)}
    spelling = {i for i in pieces.text_ids if spells(names[i])}
    assert counted | spelling | {0, 1, 2, 3} <= found
    assert len(spelling) > 100
    language = model.rules.target_language("deu_Latn")
    assert language is not None
    others = {i for e in model.rules.languages if e is not language for i in e.target_prefix_ids}
    assert set(language.target_prefix_ids) <= found
    assert not others & found
    rest = found - counted - {0, 1, 2, 3, *language.target_prefix_ids}
    assert all(belongs(names[i], None) or spells(names[i]) for i in rest)


def test_the_config_and_the_record(tmp_path: Path, german: Path, french: Path) -> None:
    entries = (f"deu={german}", f"fra_Latn={french}")
    model = demo(tmp_path, *entries, licence="CC0-1.0", quantization="int8", union=True)
    prefix_ids = [4003, 4004]
    assert [vocabulary(model)[i] for i in prefix_ids] == ["deu_Latn", "fra_Latn"]
    written = parameters(model)
    assert written["use_vmap"] == "true"
    assert json.loads(written["vmap_prefix_ids"]) == prefix_ids
    assert "vmap_source_ids" not in written
    record = model.manifest["shortlist"]
    assert record["tokens"] == len(tokens_of(model))
    assert record["share_of_vocabulary"] == record["tokens"] / 4009
    assert record["licence"] == "CC0-1.0"
    assert record["size_limit"] is None
    assert record["probes"] == 13
    assert 0 < record["probes_changed"] <= 13
    first, second = record["languages"]
    assert (first["code"], first["script"]) == ("deu_Latn", "Latn")
    assert second["text"] == {
        "file": "french.txt",
        "sha256": hashlib.sha256(french.read_bytes()).hexdigest(),
        "lines": 40,
        "lines_counted": 36,
        "lines_held_out": 4,
        "held_out_coverage": second["text"]["held_out_coverage"],
    }
    assert 0.8 < second["text"]["held_out_coverage"]["tokens"] <= 1
    assert model.manifest["files"] == checksums(model.directory)
    assert "1/model/vmap.txt" in model.manifest["files"]


def test_without_the_option_nothing_is_written(tmp_path: Path) -> None:
    model = prepare(PrepareOptions("demo", tmp_path))
    assert not (model.model_folder / "vmap.txt").exists()
    assert "shortlist" not in model.manifest
    assert not {"use_vmap", "vmap_prefix_ids"} & parameters(model).keys()


def test_a_licence_that_is_not_stated(tmp_path: Path, german: Path) -> None:
    assert demo(tmp_path, f"deu={german}").manifest["shortlist"]["licence"] == "not stated"


def test_coverage_is_measured_on_lines_that_are_not_counted(tmp_path: Path) -> None:
    """Nine lines are of known pieces; the tenth, held out, has a word that none of them has."""
    known = [f"Der Zug fährt um {n} Uhr." for n in range(9)]
    text = write(tmp_path / "text.txt", [*known, "Der Zug fährt um 3 Uhr, Fahrgäste."])
    model = demo(tmp_path, f"deu={text}")
    pieces = read_pieces(model.tokenizer_folder, model.rules)
    held_out = pieces.encode("Der Zug fährt um 3 Uhr, Fahrgäste.")
    missing = [i for i in held_out if i not in ids(model)]
    assert missing
    coverage = model.manifest["shortlist"]["languages"][0]["text"]["held_out_coverage"]
    assert coverage == {"tokens": 1 - len(missing) / len(held_out), "sentences": 0}


def test_equal_lines_count_once(tmp_path: Path) -> None:
    text = write(tmp_path / "text.txt", ["", *GERMAN, *GERMAN, "  " + GERMAN[0]])
    entry = demo(tmp_path, f"deu={text}").manifest["shortlist"]["languages"][0]["text"]
    assert (entry["lines"], entry["lines_counted"], entry["lines_held_out"]) == (82, 36, 4)


def test_a_size_keeps_the_most_frequent(tmp_path: Path, german: Path) -> None:
    model = demo(tmp_path, f"deu_Latn={german}", size=5)
    pieces = read_pieces(model.tokenizer_folder, model.rules)
    names = vocabulary(model)
    counts = Counter(i for n, line in enumerate(GERMAN) if n % 10 != 9 for i in pieces.encode(line))
    words = [i for i in counts if not spells(names[i]) and not belongs(names[i], None)]
    best = sorted(words, key=lambda i: (-counts[i], i))[:5]
    assert {i for i in words if i in ids(model)} == set(best)
    assert model.manifest["shortlist"]["languages"][0]["tokens"] == 5
    assert model.manifest["shortlist"]["size_limit"] == 5


def test_a_size_above_the_text_is_filled_up_by_script(tmp_path: Path, german: Path) -> None:
    alone = demo(tmp_path, f"deu_Latn={german}", name="alone")
    of_text = alone.manifest["shortlist"]["languages"][0]["tokens"]
    model = demo(tmp_path, f"deu_Latn={german}", size=of_text + 30)
    names, with_text = vocabulary(model), ids(alone)
    rest = [
        i
        for i in range(4, 3997)
        if i not in with_text and not spells(names[i]) and not belongs(names[i], None)
    ]
    assert ids(model) == with_text | set(rest[:30])
    assert model.manifest["shortlist"]["languages"][0]["tokens"] == of_text + 30


def test_without_a_text_it_has_the_script(tmp_path: Path) -> None:
    model = demo(tmp_path, "deu_Latn", size=50)
    names = vocabulary(model)
    first = [i for i in range(4, 4009) if not spells(names[i]) and not belongs(names[i], None)][:50]
    assert set(first) <= ids(model)
    entry = model.manifest["shortlist"]["languages"][0]
    assert entry == {"code": "deu_Latn", "script": "Latn", "tokens": 50, "text": None}
    everything = demo(tmp_path, "deu_Latn", name="everything")
    special = {names.index("<mask>"), *(i for i, n in enumerate(names) if n.endswith("_Latn"))}
    assert ids(everything) == set(range(4009)) - special | {names.index("deu_Latn")}


@pytest.mark.parametrize(
    ("piece", "script", "expected"),
    [
        ("▁straße", "Latn", True),
        ("▁Straße1", "Latn", True),
        ("е", "Latn", False),  # Cyrillic
        ("▁город", "Cyrl", True),
        ("データ", "Jpan", True),
        ("情報の", "Jpan", True),
        ("한국", "Kore", True),
        ("情報", "Hans", True),
        ("の", "Hans", False),
        ("ー", "Latn", False),  # common to the two kana alone
        ("१२", "Latn", False),
        ("१२", "Deva", True),
        ("12,5", "Arab", True),
        ("«", None, True),
        ("😀", None, True),
        ("12", None, True),
        ("▁a", None, False),
    ],
)
def test_scripts(piece: str, script: str | None, expected: bool) -> None:
    assert belongs(piece, script) == expected


def test_what_spells() -> None:
    assert [spells(piece) for piece in ("a", "▁a", "▁", "字", "<0x0A>", "ab", "▁ab", "<0xZZ>")] == [
        True, True, True, True, True, False, False, False,
    ]  # fmt: skip


def test_letters_by_script() -> None:
    assert letters("Ja, 3 поезда!", "Latn") == (2, 8)


@pytest.mark.parametrize(
    ("code", "family", "script"),
    [
        ("deu_Latn", "nllb", "Latn"),
        ("zho_Hant", "nllb", "Hant"),
        ("ja", "m2m100", "Jpan"),
        ("sr", "m2m100", "Cyrl"),
        ("ar_AR", "mbart50", "Arab"),
        ("en_XX", "mbart50", "Latn"),
        ("hin", "marian", "Deva"),
        ("roa", "marian", None),
        ("zzz", "marian", None),
    ],
)
def test_the_script_of_a_language(code: str, family: str, script: str | None) -> None:
    (known,) = (known for known in FAMILIES if known.name == family)
    assert script_of(Language(code), known) == script


def test_a_list_for_a_model_with_a_vocabulary_for_each_side(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, german: Path
) -> None:
    """The list has the tokens of the target's vocabulary, special ones by their name."""
    checkpoint = checkpoint_copy("marian-two")
    shortlist = ShortlistOptions((f"de={german}",))
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository", shortlist=shortlist))
    pieces = read_pieces(model.tokenizer_folder, model.rules, of_targets=True)
    file = model.model_folder / "target_vocabulary.json"
    names = json.loads(file.read_text(encoding="utf-8"))
    lines = [line for number, line in enumerate(GERMAN) if number % 10 != 9]
    counted = {names[i] for line in lines for i in pieces.encode(line)}
    assert {"</s>", "<unk>"} | counted <= set(tokens_of(model))
    (found,) = model.manifest["shortlist"]["languages"]
    assert (found["code"], found["script"]) == ("de", "Latn")


@pytest.mark.parametrize(
    ("family", "entry", "parameter", "token"),
    [
        ("nllb", "deu_Latn={text}", "vmap_prefix_ids", "deu_Latn"),
        ("m2m100", "de={text}", "vmap_prefix_ids", "__de__"),
        ("mbart50", "de_DE={text}", "vmap_prefix_ids", "de_DE"),
        ("marian", "deu={text}", "vmap_source_ids", ">>deu<<"),
        ("marian-pair", "de={text}", None, None),
        ("marian-pair", "{text}", None, None),
        ("madlad", "de={text}", "vmap_source_ids", "<2de>"),
    ],
)
def test_every_family(
    tmp_path: Path, family: str, entry: str, parameter: str | None, token: str | None
) -> None:
    """It is made of the target side's pieces, and CTranslate2 answers with nothing else."""
    lines = [text for text in sentences(400, seed=9) if any(c in text for c in "äöüß")]
    text = write(tmp_path / "text.txt", lines)
    shortlist = ShortlistOptions((entry.format(text=text),))
    model = prepare_tiny(family, tmp_path / "repository", "model", shortlist=shortlist)
    written, names = parameters(model), vocabulary(model)
    assert written["use_vmap"] == "true"
    ids_of_languages = {n: json.loads(v) for n, v in written.items() if n.endswith("_ids")}
    del ids_of_languages["special_ids"]
    assert ids_of_languages == ({parameter: [names.index(token)]} if parameter and token else {})
    found = ids(model)
    assert len(found) < 0.9 * len(names)
    assert {2 if family in ("nllb", "m2m100", "mbart50") else model.rules.end_ids[0]} <= found
    pieces = read_pieces(model.tokenizer_folder, model.rules, of_targets=True)
    different = list(dict.fromkeys(lines))
    assert all(
        i in found
        for n, line in enumerate(different)
        if n % 10 != 9
        for i in pieces.encode(line.strip())
        if i != model.rules.unk_id
    )
    assert model.manifest["shortlist"]["probes"] >= 12


def test_opus_mt_counts_with_the_target_sides_pieces(tmp_path: Path) -> None:
    model = prepare_tiny("marian-pair", tmp_path, "model")
    text = "der alte Seemann öffnete"
    of_sources = read_pieces(model.tokenizer_folder, model.rules).encode(text)
    of_targets = read_pieces(model.tokenizer_folder, model.rules, of_targets=True).encode(text)
    assert of_sources != of_targets


def test_a_model_that_is_told_in_words_has_none(tmp_path: Path) -> None:
    text = write(tmp_path / "text.txt", GERMAN)
    with pytest.raises(SettingError, match="names the target language in words"):
        prepare_tiny("t5", tmp_path / "r", "model", shortlist=ShortlistOptions((f"de={text}",)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["deu_Latin"], "the model has no target language 'deu_Latin'; nearest: deu_Latn"),
        (["deu={folder}/none.txt"], "cannot read {folder}/none.txt: No such file or directory"),
        (["deu={folder}"], "cannot read {folder}: Is a directory"),
        (["deu={folder}/empty.txt"], "empty.txt has 0 different lines of text; give at least 10"),
        (["deu={folder}/repeated.txt"], "repeated.txt has 1 different lines of text"),
        (["deu={folder}/latin1.txt"], "latin1.txt, line 2 is not UTF-8"),
        (["deu={folder}/russian.txt"], "0% of the letters in {folder}/russian.txt are Latn"),
        (["{folder}/german.txt"], "for a text, name its language: LANGUAGE={folder}/german.txt"),
        (["deu="], "'deu=' is neither a language nor language=file"),
        (["deu,,fra"], "'' is neither a language nor language=file"),
        (["deu,deu_Latn"], "names deu_Latn twice"),
        (["deu", "--shortlist-size", "0"], "--shortlist-size 0 is not possible"),
        (
            [
                "deu",
                "--shortlist-size",
                "1",
                "--set",
                "beam_size=200",
                "--set",
                "max_beam_size=999",
            ],
            "the shortlist has 192 tokens, and beam_size 200 needs 400",
        ),
        (
            ["deu", "--shortlist-size", "1", "--set", "sampling_topk=300"],
            "the shortlist has 192 tokens, and sampling_topk 300 needs 300",
        ),
        (
            [
                "deu",
                "--shortlist-size",
                "1",
                "--set",
                "use_vmap=1",
                "--set",
                "return_alternatives=1",
                "--set",
                "num_hypotheses=97",
                "--set",
                "max_num_hypotheses=999",
            ],
            "the shortlist has 192 tokens, and num_hypotheses 97 needs 194",
        ),
    ],
)
def test_what_is_not_possible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    write(tmp_path / "german.txt", GERMAN)
    write(tmp_path / "russian.txt", RUSSIAN)
    write(tmp_path / "repeated.txt", ["Guten Tag."] * 30)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "latin1.txt").write_bytes("gut\nschön\n".encode("latin-1"))
    given = [argument.format(folder=tmp_path) for argument in arguments]
    repository = str(tmp_path / "repository")
    assert cli.prepare(["demo", "--model-repository", repository, "--shortlist-from", *given]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("ct2-prepare: ")
    assert message.format(folder=tmp_path) in last
    assert not Path(repository).exists()


def test_the_other_options_need_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--shortlist-size", "9"], ["--shortlist-licence", "x"], ["--shortlist-union"]):
        assert cli.prepare(["demo", "--model-repository", str(tmp_path / "r"), *option]) == 1
        assert "name a target language with it" in capsys.readouterr().err


def test_the_command_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], german: Path
) -> None:
    arguments = ["demo", "--model-repository", str(tmp_path / "r")]
    arguments += ["--shortlist-from", f"deu={german},fra", "--shortlist-licence", "CC0"]
    arguments += ["--shortlist-union"]
    assert cli.prepare(arguments) == 0
    said = capsys.readouterr().err
    assert "of 4009 tokens (" in said
    assert "), 192 of them kept always, licence" in said
    assert "licence of the texts CC0" in said
    assert "deu_Latn: 36 lines of german.txt counted, of 4 others " in said
    assert "fra_Latn: every piece of the script Latn" in said
    assert "of 13 probes, some of them odd, get another answer with it" in said


def test_a_size_is_said_of_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["demo", "--model-repository", str(tmp_path / "r"), "--shortlist-from", "deu"]
    assert cli.prepare([*arguments, "--shortlist-size", "50"]) == 0
    assert "deu_Latn: the first 50 pieces of the script Latn" in capsys.readouterr().err
    assert cli.prepare([*arguments, "--shortlist-size", "4009", "--force"]) == 0
    assert "deu_Latn: every piece of the script Latn" in capsys.readouterr().err


def test_spaces_around_an_entry(tmp_path: Path, german: Path) -> None:
    languages = demo(tmp_path, f"deu={german} ", " fra").manifest["shortlist"]["languages"]
    assert [entry["code"] for entry in languages] == ["deu_Latn", "fra_Latn"]


def test_a_missing_text_of_a_pair(tmp_path: Path) -> None:
    shortlist = ShortlistOptions((str(tmp_path / "none.txt"),))
    with pytest.raises(SettingError, match=r"no target language .*\(and there is no file of that"):
        prepare_tiny("marian-pair", tmp_path / "repository", "model", shortlist=shortlist)


def test_a_poor_coverage_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write(tmp_path / "text.txt", list(dict.fromkeys(sentences(60, seed=3))))
    arguments = ["demo", "--model-repository", str(tmp_path / "r")]
    assert cli.prepare([*arguments, "--shortlist-from", f"deu={text}"]) == 0
    assert "a longer text or a larger --shortlist-size covers more" in capsys.readouterr().err


def test_a_setting_switches_it_off(tmp_path: Path, german: Path) -> None:
    model = demo(tmp_path, f"deu={german}", settings={"use_vmap": "false"})
    assert parameters(model)["use_vmap"] == "false"
    assert tokens_of(model)


def test_a_missing_text_is_said_before_the_model_is_looked_for(tmp_path: Path) -> None:
    options = PrepareOptions(
        "nobody/nothing", tmp_path, shortlist=ShortlistOptions((f"deu={tmp_path}/none.txt",))
    )
    with pytest.raises(SettingError, match=r"cannot read .*none\.txt"):
        prepare(options)


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(PrepareError):
        demo(tmp_path, "xxx")
    assert list(tmp_path.iterdir()) == []


def test_answers_are_those_of_the_whole_vocabulary_where_they_are_on_the_list(
    tmp_path: Path,
) -> None:
    """Greedy search over fewer tokens takes the same ones as long as they are on the list."""
    model = demo(tmp_path, "deu_Latn", "fra_Latn", size=2500, union=True)
    listed, names = set(tokens_of(model)), vocabulary(model)
    rules: TokenRules = model.rules
    pieces = read_pieces(model.tokenizer_folder, rules)
    source, target = rules.source_language("eng"), rules.target_language("deu")
    texts = ["Good evening and welcome to Zurich!", "Penalty for Castelmar! Szabó steps up."]
    rows = [[names[i] for i in rules.input_ids(pieces.encode(t), source, target)] for t in texts]
    prefix = [[names[i] for i in rules.target_prefix(target)]] * len(rows)
    translator = ctranslate2.Translator(str(model.model_folder), compute_type="float32")
    whole = translator.translate_batch(rows, target_prefix=prefix, beam_size=1)
    listed_only = translator.translate_batch(rows, target_prefix=prefix, beam_size=1, use_vmap=True)
    for one, other in zip(whole, listed_only, strict=True):
        fits = set(one.hypotheses[0]) <= listed
        assert (one.hypotheses == other.hypotheses) == fits
