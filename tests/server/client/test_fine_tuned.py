# SPDX-License-Identifier: Apache-2.0
"""A fine-tuned checkpoint, served as prepared: the same text as `generate` with its own config."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from ct2_triton.client import TranslationClient
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.prepared_model import TEXT_SUFFIX, PreparedModel
from ct2_triton.serve import TritonServer
from server.helpers import Connection
from support.tiny import tiny_checkpoint

TEXTS = ["How is your day going?", "She said covfefe to him, covfefe.", "covfefe and more"]
OWN_SEARCH = {"no_repeat_ngram_size": 3, "suppress_tokens": [889, 1156], "max_length": 31}
FREQUENT = 1205  # of what the tiny model answers


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NLLB in its legacy order, with an added token that answers hold, and a search of its own."""
    folder = tmp_path_factory.mktemp("fine-tuned") / "checkpoint"
    shutil.copytree(tiny_checkpoint("nllb"), folder)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, legacy_behaviour=True)
    tokenizer.add_tokens(["covfefe"])
    tokenizer.save_pretrained(folder)
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    with torch.no_grad():
        rows = model.get_input_embeddings().weight
        rows[tokenizer.convert_tokens_to_ids("covfefe")] = 1.2 * rows[FREQUENT]
    model.save_pretrained(folder)
    path = folder / "generation_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **OWN_SEARCH}), encoding="utf-8")
    return folder


@pytest.fixture
def served(
    checkpoint: Path, server: TritonServer, server_repository: Path
) -> Iterator[PreparedModel]:
    options = PrepareOptions(
        str(checkpoint), server_repository, "fine-tuned", quantization="float32", io="both"
    )
    model = prepare(options)
    names = (model.name, model.name + TEXT_SUFFIX)
    connection = Connection(server.grpc_url)
    for name in names:
        connection.raw.load_model(name)
    yield model
    for name in names:
        connection.raw.unload_model(name)
        shutil.rmtree(server_repository / name)
    connection.close()


async def test_text_is_that_of_generate_with_its_own_config(
    checkpoint: Path, served: PreparedModel, server: TritonServer
) -> None:
    async with TranslationClient(
        server.grpc_url, served.name, tokenizer=served.tokenizer_folder
    ) as client:
        answers = await client.translate(TEXTS, source="eng_Latn", targets="fra_Latn")
    async with TranslationClient(server.grpc_url, served.name + TEXT_SUFFIX) as client:
        of_texts = await client.translate(TEXTS, source="eng_Latn", targets="fra_Latn")
    assert [a.text for a in of_texts] == [a.text for a in answers]
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(checkpoint, src_lang="eng_Latn")
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    french = tokenizer.convert_tokens_to_ids("fra_Latn")
    for text, answer in zip(TEXTS, answers, strict=True):
        asked = tokenizer(text, return_tensors="pt")
        assert asked.input_ids[0, -2:].tolist() == [2, tokenizer.convert_tokens_to_ids("eng_Latn")]
        [ids] = model.generate(**asked, forced_bos_token_id=french).tolist()
        assert len(ids) <= OWN_SEARCH["max_length"]
        assert answer.text == tokenizer.decode(ids, skip_special_tokens=True)
    assert any("covfefe" in answer.text for answer in answers)
