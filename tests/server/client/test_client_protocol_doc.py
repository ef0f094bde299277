# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/protocol.md, run in order against the live server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ct2_triton.client import SyncTranslationClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.prepared_model import PreparedModel
    from ct2_triton.serve import TritonServer
    from server.client.conftest import Prepared

DOCUMENT = Path(__file__).parents[3] / "docs" / "protocol.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def adapted(server: TritonServer, prepared: Prepared) -> Callable[[str], str]:
    """A function that puts this server's addresses and names into an example."""
    model = prepared("nllb")

    def replaced(example: str) -> str:
        for written, here in (
            ("localhost:8001", server.grpc_url),
            ("http://localhost:8000", server.http_url),
            ("model_repository/nllb/tokenizer", str(model.tokenizer_folder)),
            ('"nllb"', f'"{model.name}"'),
            ("/models/nllb/", f"/models/{model.name}/"),
        ):
            example = example.replace(written, here)
        return example

    return replaced


@pytest.fixture(scope="module")
def variables(adapted: Callable[[str], str]) -> dict[str, Any]:
    """What the Python examples leave behind."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(adapted(block), str(DOCUMENT), "exec"), names)  # noqa: S102 - our own document
    return names


@pytest.fixture(scope="module")
def client(server: TritonServer, prepared: Prepared) -> Any:
    model = prepared("nllb")
    with SyncTranslationClient(
        server.grpc_url, model.name, tokenizer=model.tokenizer_folder
    ) as opened:
        yield opened


def test_one_request(variables: dict[str, Any], client: SyncTranslationClient) -> None:
    expected = client.translate("How is your day going?", source="eng_Latn", targets="deu_Latn")
    assert variables["german"].strip() == expected.text


def test_several_rows(variables: dict[str, Any], client: SyncTranslationClient) -> None:
    for text, target, prefix, ids in zip(
        variables["texts"],
        variables["targets"],
        variables["prefixes"],
        variables["answers"],
        strict=True,
    ):
        expected = client.translate(text, source="eng_Latn", targets=target)
        assert ids.tolist() == [*prefix, *expected.ids]


def test_options(variables: dict[str, Any], client: SyncTranslationClient) -> None:
    expected = client.translate(
        "How is your day going?",
        source="eng_Latn",
        targets="deu_Latn",
        beam_size=4,
        num_hypotheses=2,
        return_scores=True,
        suppress_sequences=[["<unk>"]],
    )
    assert variables["hypotheses"] == [
        (list(one.ids), one.score, one.finish_reason) for one in expected.hypotheses
    ]


def test_a_draft(variables: dict[str, Any]) -> None:
    assert variables["again"].as_numpy("OUTPUT_IDS")[0].tolist() == variables["older"].tolist()
    assert 0 < variables["kept"] <= len(variables["draft"])


def test_errors(variables: dict[str, Any]) -> None:
    status, message = variables["refusal"]
    said = re.search(r'`refusal` is now `\("(.*?)", \'(.*?)\'\)`', TEXT, flags=re.DOTALL)
    assert said
    assert (status, message) == (said[1], " ".join(said[2].split()))


def test_curl(adapted: Callable[[str], str]) -> None:
    [example] = blocks("sh")
    printed = subprocess.run(
        ["bash", "-c", adapted(example)], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    outputs = {output["name"]: output for output in json.loads(printed)["outputs"]}
    assert outputs["OUTPUT_IDS"]["shape"] == [1, 8]
    assert outputs["OUTPUT_IDS"]["data"][0] == 1202
    assert outputs["FINISH_REASON"]["data"] == ["length"]


def test_the_fields_of_languages_json_are_named(prepared: Prepared) -> None:
    model: PreparedModel = prepared("nllb")
    written = json.loads((model.tokenizer_folder / "languages.json").read_text(encoding="utf-8"))
    section = TEXT[TEXT.index("## From text to IDs") :]
    told = ("format", "family", "tokenizer_class", "vocabulary_size", "duplicate_ids", "languages")
    fields = [name for name in written if name not in told]
    assert [name for name in fields if f"`{name}`" not in section] == []


def test_every_tensor_is_in_the_table(prepared: Prepared) -> None:
    config = prepared("nllb").config_file.read_text(encoding="utf-8")
    tensors = re.findall(r'^  name: "([A-Z_]+)"', config, flags=re.MULTILINE)
    assert len(tensors) == 13
    assert [name for name in tensors if not re.search(rf"^\| .*`{name}`", TEXT, re.MULTILINE)] == []
