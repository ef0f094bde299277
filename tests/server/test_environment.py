# SPDX-License-Identifier: Apache-2.0
"""Environment variables of CTranslate2 and OpenMP with values that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ct2_triton.serve.errors import ServerStartError
from server import configs
from server.helpers import Connection, Reference, sentences
from support.repository import write_model
from support.servers import MakeServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("variable", "value"), [("CT2_VERBOSE", "loud"), ("CT2_FORCE_CPU_ISA", "none")]
)
def test_ctranslate2_refuses_it_and_so_the_load_fails(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, variable: str, value: str
) -> None:
    """It throws at the first use of the library, on Triton's thread that loads."""
    write_model(tmp_path, "nllb", nllb_engine_model, configs.plain(decoding="calls"))
    with pytest.raises(ServerStartError) as failure:
        make_server(tmp_path, environment={variable: value})
    assert "ended with status 1" in str(failure.value)
    assert "failed to load 'nllb' version 1" in str(failure.value)


def test_loops_do_not_read_the_weights_that_the_library_replaces(
    make_server: MakeServer,
    tmp_path: Path,
    nllb_engine_model: Path,
    reference: Reference,
) -> None:
    """With the library of products that CTranslate2 takes on Intel."""
    write_model(tmp_path, "nllb", nllb_engine_model)
    server = make_server(tmp_path, environment={"CT2_USE_MKL": "1", "CT2_PACKED_GEMM": "1"})
    assert " layers packed for " in server.log_text()
    (row, prefix), *_ = sentences(reference, 1)
    connection = Connection(server.grpc_url)
    expected = reference.translate(row, prefix, max_decoding_length=9)
    assert connection.translate("nllb", row, prefix, max_decoding_length=9) == expected
    connection.close()


def test_openmp_ignores_it(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path, reference: Reference
) -> None:
    write_model(tmp_path, "nllb", nllb_engine_model)
    server = make_server(tmp_path, environment={"OMP_NUM_THREADS": "many"})
    (row, prefix), *_ = sentences(reference, 1)
    connection = Connection(server.grpc_url)
    expected = reference.translate(row, prefix, max_decoding_length=9)
    assert connection.translate("nllb", row, prefix, max_decoding_length=9) == expected
    connection.close()


def test_settings_of_the_backend_that_it_does_not_know_are_refused(
    make_server: MakeServer, tmp_path: Path, nllb_engine_model: Path
) -> None:
    write_model(tmp_path, "nllb", nllb_engine_model)
    with pytest.raises(ServerStartError) as failure:
        make_server(tmp_path, server_arguments=["--backend-config=ctranslate2,beam_size=4"])
    assert '--backend-config=ctranslate2,beam_size="4" is not known' in str(failure.value)
    known = ["--backend-config=ctranslate2,default-max-batch-size=8"]
    assert make_server(tmp_path, server_arguments=known).is_alive()
