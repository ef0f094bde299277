# SPDX-License-Identifier: Apache-2.0
"""Every family: prepared, read again, and translating like `transformers` from text to text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
import transformers

from ct2_triton.client.pieces import read_pieces
from ct2_triton.client.tokenization import Tokenizer
from ct2_triton.errors import ConversionError, UnsupportedModelError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import PreparedModel, TokenRules
from python.prepare.conftest import Prepared
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences
from tiny_models import TinyOptions

MAX_NEW_TOKENS = 24
TEXTS = sentences(8, seed=4242)


@dataclass(frozen=True)
class Case:
    """One way to use a family, with what its documentation in `transformers` says to do."""

    family: str
    source: str | None
    target: str | None
    marked: str = "{}"
    src_lang: str | None = None
    forced: str | None = None


CASES = [
    Case("nllb", "eng_Latn", "fra_Latn", src_lang="eng_Latn", forced="fra_Latn"),
    Case("nllb", "zho_Hant", "ary_Arab", src_lang="zho_Hant", forced="ary_Arab"),
    Case("m2m100", "en", "fr", src_lang="en", forced="__fr__"),
    Case("mbart50", "de_DE", "gl_ES", src_lang="de_DE", forced="gl_ES"),
    Case("mbart25", "de_DE", "ro_RO", src_lang="de_DE", forced="ro_RO"),
    Case("marian", "en", "fra", marked=">>fra<< {}"),
    Case("marian-pair", "en", "de"),
    Case("t5", "en", "de", marked="translate English to German: {}"),
    Case("madlad", None, "de", marked="<2de> {}"),
]


def case_name(case: Case) -> str:
    return f"{case.family}-{case.source}-{case.target}"


def prepared_outputs(model: PreparedModel, case: Case, texts: Sequence[str]) -> list[list[int]]:
    """What a client of the prepared model gets, prefix taken off."""
    rules = model.rules
    source, target = rules.source_language(case.source), rules.target_language(case.target)
    pieces = read_pieces(model.tokenizer_folder, rules)
    vocabulary = engine_vocabulary(model)
    ids = {token: i for i, token in reversed(list(enumerate(vocabulary)))}
    prefix = rules.target_prefix(target)
    rows = [rules.input_ids(pieces.encode(text), source, target) for text in texts]
    results = ctranslate2.Translator(str(model.model_folder)).translate_batch(
        [[vocabulary[i] for i in row] for row in rows],
        target_prefix=[[vocabulary[i] for i in prefix]] * len(rows),
        beam_size=1,
        max_decoding_length=rules.prefix_length(target) + MAX_NEW_TOKENS,
    )
    return [
        rules.without_prefix([ids[token] for token in result.hypotheses[0]], target)
        for result in results
    ]


def engine_vocabulary(model: PreparedModel) -> list[str]:
    path = model.model_folder / "shared_vocabulary.json"
    return list(json.loads(path.read_text(encoding="utf-8")))


def reference_outputs(
    case: Case, rules: TokenRules, texts: Sequence[str], checkpoint: Path | None = None
) -> list[list[int]]:
    """What `generate` gives for the same checkpoint, without special tokens."""
    folder = checkpoint or tiny_checkpoint(case.family)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    if case.src_lang:
        tokenizer.src_lang = case.src_lang
    arguments: dict[str, Any] = {}
    if case.forced:
        name = "decoder_start_token_id" if rules.prefix_starts else "forced_bos_token_id"
        arguments[name] = tokenizer.convert_tokens_to_ids(case.forced)
    if case.family.startswith("marian"):
        arguments["bad_words_ids"] = [[tokenizer.pad_token_id]]
    forced = int(bool(case.forced) and not rules.prefix_starts)
    outputs = []
    for text in texts:
        encoded = tokenizer(case.marked.format(text), return_tensors="pt")
        with torch.no_grad():
            ids = model.generate(
                **encoded,
                num_beams=1,
                do_sample=False,
                max_new_tokens=MAX_NEW_TOKENS + forced,
                forced_eos_token_id=None,
                **arguments,
            )[0].tolist()
        ids = [
            rules.duplicate_ids.get(i, i) for i in ids[1 + forced :] if i != tokenizer.eos_token_id
        ]
        outputs.append([i for i in ids if i < rules.tokenizer_size])
    return outputs


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_outputs_are_those_of_transformers(prepared: Prepared, case: Case) -> None:
    model = prepared(case.family)
    found = prepared_outputs(model, case, TEXTS)
    assert found == reference_outputs(case, model.rules, TEXTS)
    assert len({tuple(row) for row in found}) > len(TEXTS) // 2  # the comparison shows something


@pytest.mark.parametrize("family", sorted({case.family for case in CASES}))
def test_vocabulary_is_the_tokenizers(prepared: Prepared, family: str) -> None:
    model = prepared(family)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model.tokenizer_folder)
    vocabulary = engine_vocabulary(model)
    assert len(vocabulary) == model.rules.vocabulary_size
    known = min(len(vocabulary), len(tokenizer))
    assert vocabulary[:known] == tokenizer.convert_ids_to_tokens(range(known))
    assert model.rules.tokenizer_size == len(tokenizer)


EXPECTED_DIFFERENCES = {
    "nllb": ["added: madeupword0 .. madeupword1 (ids 1404 .. 1405), rows without text"],
    "m2m100": ["added: madeupword0 .. madeupword7 (ids 1301 .. 1308), rows without text"],
    "mbart50": [],
    "mbart25": [],
    "marian": ["removed: <pad> (id 1992), which must not be generated"],
    "t5": ["added: <extra_id_0> .. <extra_id_27> (ids 1300 .. 1327), rows past the tokenizer"],
    "madlad": [],
}


@pytest.mark.parametrize("family", EXPECTED_DIFFERENCES)
def test_differences_of_the_vocabulary_are_reported(prepared: Prepared, family: str) -> None:
    verification = prepared(family).manifest["verification"]
    assert verification["vocabulary_differences"] == EXPECTED_DIFFERENCES[family]


@pytest.mark.parametrize("family", EXPECTED_DIFFERENCES)
def test_decode_loops_answer_as_transformers(prepared: Prepared, family: str) -> None:
    proof = prepared(family).manifest["verification"]
    assert proof["loops"]["not_compared"] == ""
    assert proof["loops"]["stored_rows_equal"] == proof["probes"]


def test_duplicates_are_mapped_to_their_first_id(prepared: Prepared) -> None:
    rules = prepared("t5").rules
    assert len(rules.duplicate_ids) == 28
    vocabulary = engine_vocabulary(prepared("t5"))
    for later, first in rules.duplicate_ids.items():
        assert first < later
        assert vocabulary[first] == vocabulary[later]


def test_pad_of_marian_lies_outside_the_vocabulary(prepared: Prepared) -> None:
    rules = prepared("marian").rules
    assert rules.pad_id == rules.vocabulary_size


@pytest.mark.parametrize("family", ["nllb", "m2m100", "mbart50"])
def test_source_language_comes_first_and_the_end_last(prepared: Prepared, family: str) -> None:
    rules = prepared(family).rules
    english, french = rules.source_language("en"), rules.target_language("fr")
    assert english is not None
    assert french is not None
    assert rules.input_ids([7, 8], english, french) == [english.source_ids[0], 7, 8, 2]
    assert rules.target_prefix(french) == list(french.target_prefix_ids)
    assert rules.source_required
    assert rules.target_required


@pytest.mark.usefixtures("short_proofs")
def test_legacy_nllb_has_the_source_language_last(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """What transformers before 4.30 gave, and what some models were fine-tuned with."""
    checkpoint, case = checkpoint_copy("nllb"), CASES[0]
    edit_json(checkpoint / "tokenizer_config.json", legacy_behaviour=True)
    options = PrepareOptions(str(checkpoint), tmp_path / "repository", quantization="float32")
    model = prepare(options)
    rules = TokenRules.read(model.tokenizer_folder)
    english, french = rules.source_language("en"), rules.target_language("fr")
    assert english is not None
    assert rules.input_ids([7, 8], english, french) == [7, 8, 2, english.source_ids[0]]
    found = prepared_outputs(model, case, TEXTS)
    assert found == reference_outputs(case, rules, TEXTS, checkpoint)
    assert found != prepared_outputs(prepare_usual(tmp_path), case, TEXTS)


@pytest.mark.usefixtures("short_proofs")
def test_characters_that_are_spelled_in_bytes_come_back(tmp_path: Path) -> None:
    """The decoder of such a tokenizer.json leaves `<0xE2><0x98><0x83>`; clients read a snowman."""
    source = tiny_checkpoint("nllb", TinyOptions(pieces=1700, byte_fallback=True))
    checkpoint = Path(shutil.copytree(source, tmp_path / "checkpoint"))
    path = checkpoint / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    edit_json(path, model={**content["model"], "byte_fallback": True})
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    tokenizer = Tokenizer(model.tokenizer_folder)
    ids = tokenizer.encode("a snowman: ☃").ids
    assert len(ids) > len("☃".encode())
    assert tokenizer.decode(ids) == "a snowman: ☃"


def prepare_usual(folder: Path) -> PreparedModel:
    return prepare(
        PrepareOptions(str(tiny_checkpoint("nllb")), folder / "usual", quantization="float32")
    )


def test_nllb_has_the_released_layout(prepared: Prepared) -> None:
    """4 special tokens, pieces numbered one higher than SentencePiece does, 202 codes, <mask>."""
    import sentencepiece

    model = prepared("nllb")
    file = model.tokenizer_folder / "sentencepiece.bpe.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    vocabulary = engine_vocabulary(model)
    assert vocabulary[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    size = processor.get_piece_size()
    assert vocabulary[4 : size + 1] == [processor.id_to_piece(i) for i in range(3, size)]
    codes = vocabulary[size + 1 : size + 203]
    assert codes == [entry.code for entry in model.rules.languages]
    assert codes[0] == "ace_Arab"
    assert codes != sorted(codes)  # ids never follow from the alphabet
    assert vocabulary[size + 203] == "<mask>"


def test_target_of_marian_is_named_in_the_source(prepared: Prepared) -> None:
    rules = prepared("marian").rules
    french = rules.target_language("fr")
    assert french is not None
    vocabulary = engine_vocabulary(prepared("marian"))
    assert rules.input_ids([7], None, french) == [vocabulary.index(">>fra<<"), 7, 0]
    assert rules.target_prefix(french) == []
    assert rules.target_required
    assert not rules.source_required


@pytest.mark.usefixtures("short_proofs")
def test_a_t5_without_tasks_has_no_languages(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    checkpoint = checkpoint_copy("t5")
    edit_json(checkpoint / "config.json", task_specific_params=None)
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    assert model.rules.languages == ()
    assert model.rules.input_ids([5, 6], None, None) == [5, 6, 1]


@pytest.mark.usefixtures("short_proofs")
def test_mbart_without_a_begin_token_is_completed(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """The converter writes null for it, which CTranslate2 does not load."""
    checkpoint = checkpoint_copy("mbart50")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        content = json.loads((checkpoint / name).read_text(encoding="utf-8"))
        del content["bos_token"]
        (checkpoint / name).write_text(json.dumps(content), encoding="utf-8")
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    assert model.manifest["repairs"] == ["bos_token was null, set to <s>"]
    ctranslate2.Translator(str(model.model_folder))


@pytest.mark.usefixtures("short_proofs")
def test_mbart_whose_config_names_no_tokenizer_starts_like_mbart50(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """The converter takes it for mBART-25, which has no decoder start token."""
    checkpoint = checkpoint_copy("mbart50")
    edit_json(checkpoint / "config.json", tokenizer_class=None)
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    assert model.manifest["repairs"] == ["decoder_start_token was null, set to </s>"]


@pytest.mark.usefixtures("short_proofs")
def test_weights_in_shards_and_in_the_older_format(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, prepared: Prepared
) -> None:
    checkpoint = checkpoint_copy("nllb")
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    (checkpoint / "model.safetensors").unlink()
    model.save_pretrained(checkpoint, max_shard_size="400KB", safe_serialization=False)
    assert (checkpoint / "pytorch_model.bin.index.json").is_file()
    result = prepare(
        PrepareOptions(str(checkpoint), tmp_path / "repository", quantization="float32")
    )
    same = prepared("nllb")
    assert (result.model_folder / "model.bin").read_bytes() == (
        same.model_folder / "model.bin"
    ).read_bytes()


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
def test_checkpoints_in_half_precision_are_proved_in_float32(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path, stored: torch.dtype
) -> None:
    checkpoint = checkpoint_copy("nllb")
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    model.to(stored).save_pretrained(checkpoint)
    result = prepare(
        PrepareOptions(str(checkpoint), tmp_path / "repository", quantization="float32")
    )
    proof = result.manifest["verification"]
    assert proof["near_ties"] == []
    assert proof["stored_rows_equal"] == proof["probes"]


def test_a_missing_shard_is_named(checkpoint_copy: Callable[[str], Path], tmp_path: Path) -> None:
    checkpoint = checkpoint_copy("nllb")
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    (checkpoint / "model.safetensors").unlink()
    model.save_pretrained(checkpoint, max_shard_size="400KB")
    shard = sorted(checkpoint.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(UnsupportedModelError, match=f"missing: {shard.name}"):
        prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("nllb", {"model_type": "bert"}, "'bert'"),
        ("mbart50", {"tokenizer_class": "BartTokenizer"}, "'BartTokenizer'"),
    ],
)
def test_other_families_are_refused(
    checkpoint_copy: Callable[[str], Path],
    tmp_path: Path,
    family: str,
    changes: dict[str, str],
    named: str,
) -> None:
    checkpoint = checkpoint_copy(family)
    for name in ("config.json", "tokenizer_config.json"):
        edit_json(checkpoint / name, **changes)
    with pytest.raises(UnsupportedModelError, match=named) as failure:
        prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    assert "NLLB-200, M2M100, mBART-50, mBART-25, Marian (OPUS-MT), T5" in str(failure.value)
    assert not (tmp_path / "repository").exists()


def edit_json(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def test_nllb_moe_is_refused_with_what_stands_in_the_way(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    checkpoint = checkpoint_copy("nllb")
    edit_json(checkpoint / "config.json", model_type="nllb-moe")
    with pytest.raises(UnsupportedModelError, match="CTranslate2 has no layers of experts"):
        prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))


def test_mbart25_whose_config_names_its_fast_tokenizer(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """The converter takes it for mBART-50, which has a decoder start token."""
    checkpoint = checkpoint_copy("mbart25")
    edit_json(checkpoint / "config.json", tokenizer_class="MBartTokenizerFast")
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    config = json.loads((model.model_folder / "config.json").read_text(encoding="utf-8"))
    assert config["decoder_start_token"] is None


def test_marian_with_a_vocabulary_for_each_side(
    checkpoint_copy: Callable[[str], Path], tmp_path: Path
) -> None:
    """Both are written, for the engine and for clients; one that is too long is refused."""
    checkpoint = checkpoint_copy("marian-two")
    model = prepare(PrepareOptions(str(checkpoint), tmp_path / "repository"))
    for side, name in (("source", "vocab.json"), ("target", "target_vocab.json")):
        numbered = json.loads((checkpoint / name).read_text(encoding="utf-8"))
        wanted = sorted(numbered, key=numbered.__getitem__)[:-1]  # without <pad>
        for folder in (model.model_folder, model.tokenizer_folder):
            written = (folder / f"{side}_vocabulary.json").read_text(encoding="utf-8")
            assert json.loads(written) == wanted
    edit_json(checkpoint / "target_vocab.json", more=len(wanted) + 1)
    options = PrepareOptions(str(checkpoint), tmp_path / "other")
    with pytest.raises(ConversionError, match="Target vocabulary 0 has size"):
        prepare(options)
