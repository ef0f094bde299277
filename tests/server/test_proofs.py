# SPDX-License-Identifier: Apache-2.0
"""Proofs that decode loops compute as CTranslate2 does, and servers that never load the latter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tritonclient.utils import InferenceServerException

from ct2_triton.prepare.options import PrepareOptions
from ct2_triton.prepare.pipeline import prepare
from ct2_triton.prepared_model import MANIFEST_NAME
from ct2_triton.serve import TritonServer
from server import configs
from server.helpers import Connection, Reference, sentences
from support.builds import of_another_build
from support.repository import write_model
from support.servers import EXPLICIT, MakeServer
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.plain_process]  # a sanitizer maps what it likes

LIMIT = {"max_decoding_length": 24}
GREEDY = {**LIMIT, "beam_size": 1}
PENALIZED = {**LIMIT, "beam_size": 4, "coverage_penalty": 0.5}
CONFIG = configs.plain(compute_type="float32")


def maps_ctranslate2(server: TritonServer) -> bool:
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libtriton_ctranslate2" in maps
    return "libctranslate2" in maps


def loads(server: TritonServer, name: str) -> list[str]:
    """What the log says of each time that the model was loaded."""
    lines = server.log_text().splitlines()
    return [line for line in lines if f"model '{name}'" in line and "decode loops (" in line]


def test_a_model_is_tried_once_and_a_later_server_never_loads_ctranslate2(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    write_model(tmp_path / "models", "nllb", nllb_engine_model, CONFIG)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    first = make_server(tmp_path / "models", environment=environment, server_arguments=EXPLICIT)
    assert maps_ctranslate2(first)
    [proof] = (tmp_path / "ct2-triton" / "proofs").iterdir()
    kept = proof.read_text()
    proof.write_text("damaged")
    connection = Connection(first.grpc_url)
    connection.raw.unload_model("nllb")
    wait_until(lambda: "successfully unloaded 'nllb'" in first.log_text())
    connection.raw.load_model("nllb")
    assert proof.read_text().split()[0] == kept.split()[0]
    connection.close()
    tried, damaged = loads(first, "nllb")
    assert ", trial of 12 tokens" in tried
    assert f"the proof {proof} is damaged, so trial of 12 tokens" in damaged

    second = make_server(tmp_path / "models", environment=environment)
    [proved] = loads(second, "nllb")
    assert "proved at an earlier load" in proved
    connection = Connection(second.grpc_url)
    [(row, prefix)] = sentences(reference, 1)
    for options, is_mapped in ((GREEDY, False), (PENALIZED, True)):
        answer = connection.translate("nllb", row, prefix, **options)
        assert answer == reference.hypotheses(row, prefix, **options)[0]
        assert maps_ctranslate2(second) == is_mapped
    connection.close()


def test_a_library_that_does_not_open_fails_only_what_needs_it(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    models = tmp_path / "models"
    write_model(
        models, "nllb", nllb_engine_model, configs.plain(compute_type="float32", proof="off")
    )
    server = make_server(models, cache=tmp_path / "cache", server_arguments=EXPLICIT)
    assert not maps_ctranslate2(server)
    [link] = (tmp_path / "cache").glob("backends/*/backends/ctranslate2/libct2triton_calls.so")
    calls = link.readlink()
    [engine] = link.parent.glob("libctranslate2.so.4")
    [other] = link.parent.glob("libgomp*")
    connection = Connection(server.grpc_url)
    [(row, prefix)] = sentences(reference, 1)
    link.unlink()
    refusals = {"libct2triton_calls.so: cannot open shared object file": lambda: None}
    refusals["has no function ct2triton_open_calls"] = lambda: link.symlink_to(other.readlink())
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(of_another_build(calls))

    def link_to_another_build() -> None:
        link.unlink()
        link.symlink_to(foreign)

    refusals[f"{link}: the backend is of ct2-triton"] = link_to_another_build
    for refusal, prepare_folder in refusals.items():
        prepare_folder()
        with pytest.raises(InferenceServerException, match="CTranslate2 are not possible") as error:
            connection.infer("nllb", [row], [prefix], **PENALIZED)
        assert refusal in str(error.value)
        answer = connection.translate("nllb", row, prefix, **GREEDY)
        assert answer == reference.hypotheses(row, prefix, **GREEDY)[0]
    write_model(models, "calls", nllb_engine_model, configs.plain(decoding="calls"))
    with pytest.raises(InferenceServerException, match="build 0{12}; install both from one build"):
        connection.raw.load_model("calls")
    link.unlink()
    link.symlink_to(calls)
    assert engine.exists()
    connection.raw.load_model("calls")
    answer = connection.translate("nllb", row, prefix, **PENALIZED)
    assert answer == reference.hypotheses(row, prefix, **PENALIZED)[0]
    connection.close()


def test_a_prepared_model_brings_its_proof(make_server: MakeServer, tmp_path: Path) -> None:
    models = tmp_path / "models"
    prepared = prepare(PrepareOptions("demo", models))
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    server = make_server(models, environment=environment)
    [line] = loads(server, "demo")
    assert "proved when it was prepared" in line
    assert not maps_ctranslate2(server)

    manifest = prepared.directory / MANIFEST_NAME
    content = json.loads(manifest.read_text())
    for proof in content["loop_proofs"].values():
        assert proof["rows_equal"] == proof["rows"] == 16
        proof["id"] = "0" * 64
    manifest.write_text(json.dumps(content))
    foreign = make_server(models, environment=environment)
    [line] = loads(foreign, "demo")
    assert f"the proof in {manifest} is of other files" in line
    assert maps_ctranslate2(foreign)
