# SPDX-License-Identifier: Apache-2.0
"""Text to text through the live server, against Hugging Face `generate` on the same checkpoint."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.client import SyncTranslationClient
from support.odd_texts import NOTHING
from support.tiny import tiny_checkpoint
from tiny_corpus import sentences

if TYPE_CHECKING:
    from pathlib import Path

    from ct2_triton.serve import TritonServer
    from server.client.conftest import MakeClient, Prepared

STEPS = 24
TEXTS = [*sentences(12, seed=11), "How is your day going?", "Two\tspaces  and a tail "]
# Family -> source and targets, under the model's own codes.
DIRECTIONS: dict[str, tuple[str | None, list[str] | None]] = {
    "nllb": ("eng_Latn", ["deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn"]),
    "m2m100": ("en", ["de", "fr", "es", "it"]),
    "mbart50": ("en_XX", ["de_DE", "fr_XX", "es_XX", "it_IT"]),
    "mbart25": ("en_XX", ["de_DE", "fr_XX", "es_XX", "it_IT"]),
    "marian": (None, ["deu", "fra", "spa"]),
    "marian-pair": (None, None),
    "marian-two": (None, None),
    "t5": ("en", ["de", "fr"]),
    "madlad": (None, ["de", "fr"]),
}
# How the family's documentation says to name the target in the text.
NAMED_IN_TEXT = {
    ("marian", "deu"): ">>deu<< ",
    ("marian", "fra"): ">>fra<< ",
    ("marian", "spa"): ">>spa<< ",
    ("t5", "de"): "translate English to German: ",
    ("t5", "fr"): "translate English to French: ",
    ("madlad", "de"): "<2de> ",
    ("madlad", "fr"): "<2fr> ",
}


@cache
def checkpoint(family: str) -> tuple[Any, Any]:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = tiny_checkpoint(family)
    return AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)


def generated(
    family: str, text: str, source: str | None, target: str | None
) -> tuple[list[int], str]:
    """Ids and text as the documentation of transformers says to make them, greedy, float32."""
    tokenizer, model = checkpoint(family)
    # A forced end at the limit is no decoding option of CTranslate2.
    options: dict[str, Any] = {"forced_eos_token_id": None}
    named = NAMED_IN_TEXT.get((family, target or ""), "")
    if target is not None and not named:
        tokenizer.src_lang = source
        token = f"__{target}__" if family == "m2m100" else target
        name = "decoder_start_token_id" if family == "mbart25" else "forced_bos_token_id"
        options[name] = tokenizer.convert_tokens_to_ids(token)
    [row] = model.generate(
        **tokenizer(named + text, return_tensors="pt"),
        num_beams=1,
        do_sample=False,
        max_new_tokens=STEPS,
        **options,
    ).tolist()
    prefix_length = 2 if "forced_bos_token_id" in options else 1  # the decoder's start goes first
    ids = [i for i in row[prefix_length:] if i != tokenizer.eos_token_id]
    return ids, tokenizer.decode(ids, skip_special_tokens=True).strip()


@pytest.mark.parametrize("texts", [TEXTS[-4:], TEXTS], ids=["few", "many"])
@pytest.mark.parametrize("family", DIRECTIONS)
async def test_ids_and_text_are_those_of_generate(
    family: str, texts: list[str], make_client: MakeClient
) -> None:
    source, targets = DIRECTIONS[family]
    async with make_client(family) as client:
        first_id = client.tokenizer.rules.duplicate_ids  # a T5 row past the tokenizer has its name
        answers = await client.translate(
            texts, source=source, targets=targets, max_decoding_length=STEPS
        )
    assert len(answers) == len(texts)
    for text, answer in zip(texts, answers, strict=True):
        for one, target in zip(answer if targets else [answer], targets or [None], strict=True):
            ids, translated = generated(family, text, source, target)
            assert (one.source_text, one.target) == (text, target or "de")  # a pair's only one
            assert list(one.ids) == [first_id.get(i, i) for i in ids], (text, target)
            assert one.text == translated


async def test_many_languages_at_once_are_the_same_as_one_by_one(make_client: MakeClient) -> None:
    source, targets = DIRECTIONS["nllb"]
    async with make_client() as client:
        together = await client.translate(
            TEXTS[0], source=source, targets=targets, max_decoding_length=STEPS
        )
        single = [
            (await client.translate(TEXTS[0], source=source, targets=t, max_decoding_length=STEPS))
            for t in targets or []
        ]
    assert together == single
    assert len({one.text for one in together}) > 1


async def test_aliases_name_the_same_languages(make_client: MakeClient) -> None:
    async with make_client() as client:
        by_alias = await client.translate(
            TEXTS[0], source="en", targets=["de", "FRA-latn"], max_decoding_length=STEPS
        )
        by_code = await client.translate(
            TEXTS[0],
            source="eng_Latn",
            targets=["deu_Latn", "fra_Latn"],
            max_decoding_length=STEPS,
        )
    assert by_alias == by_code


async def test_nothing_to_translate_is_an_empty_result(make_client: MakeClient) -> None:
    async with make_client() as client:
        answers = await client.translate(list(NOTHING), source="en", targets=["de", "fr"])
    for text, answer in zip(NOTHING, answers, strict=True):
        assert [(a.text, a.ids, a.finish_reason) for a in answer] == [("", (), "empty")] * 2, text


async def test_hypotheses_come_best_first_with_scores(make_client: MakeClient) -> None:
    async with make_client() as client:
        answer = await client.translate(
            TEXTS[0],
            source="en",
            targets="de",
            beam_size=4,
            num_hypotheses=3,
            return_scores=True,
            max_decoding_length=STEPS,
        )
        best = await client.translate(
            TEXTS[0], source="en", targets="de", beam_size=4, max_decoding_length=STEPS
        )
    scores = [one.score for one in answer.hypotheses]
    assert len(scores) == 3
    assert None not in scores
    assert scores == sorted(scores, reverse=True)
    assert len({one.ids for one in answer.hypotheses}) == 3
    assert best.ids == answer.ids
    assert best.score is None
    assert {one.finish_reason for one in answer.hypotheses} <= {"stop", "length"}


async def test_unknown_tokens_are_counted(make_client: MakeClient) -> None:
    async with make_client() as client:
        answer = await client.translate(
            "日本 and 語", source="en", targets="de", max_decoding_length=4
        )
        known = await client.translate("The", source="en", targets="de", max_decoding_length=4)
    assert answer.unknown_tokens == 2
    assert known.unknown_tokens == 0


async def test_lists_travel_as_options(make_client: MakeClient) -> None:
    async with make_client() as client:
        tokenizer = client.tokenizer
        free = await client.translate(TEXTS[0], source="en", targets="de", max_decoding_length=9)
        unwanted = checkpoint("nllb")[0].convert_ids_to_tokens(free.ids[0])
        other = await client.translate(
            TEXTS[0],
            source="en",
            targets="de",
            max_decoding_length=9,
            suppress_sequences=[[unwanted]],
        )
    assert free.ids[0] not in other.ids
    assert tokenizer.decode(other.ids) == other.text


async def test_a_model_without_a_batch_dimension(make_client: MakeClient) -> None:
    async with make_client(made={"max_batch_size": 0}) as client, make_client() as batched:
        arguments: dict[str, Any] = {"source": "en", "targets": ["de", "fr"]}
        arguments |= {"max_decoding_length": STEPS, "beam_size": 2, "num_hypotheses": 2}
        assert await client.translate(TEXTS[:3], **arguments) == await batched.translate(
            TEXTS[:3], **arguments
        )


def test_the_synchronous_twin(
    server: TritonServer, server_repository: Path, prepared: Prepared
) -> None:
    name = prepared("nllb").name
    source, targets = DIRECTIONS["nllb"]
    with SyncTranslationClient(server.grpc_url, name, repository=server_repository) as client:
        answer = client.translate(
            TEXTS[0], source=source, targets=targets, max_decoding_length=STEPS
        )
        streamed = list(
            client.stream(iter(TEXTS), source=source, targets="deu_Latn", max_decoding_length=STEPS)
        )
        first = next(client.stream(iter(TEXTS), source=source, targets="deu_Latn"))
    expected = [generated("nllb", TEXTS[0], source, target)[1] for target in targets or []]
    assert [one.text for one in answer] == expected
    assert [item.sentence.text for item in streamed] == TEXTS
    assert streamed[0].translation.text == expected[0]
    assert first.position == 0
