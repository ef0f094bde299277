# SPDX-License-Identifier: Apache-2.0
"""The areas that mutants are drawn from, and the tests that cover each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """A folder, and the tests of it, the quick ones first. Patterns are below tests/."""

    folder: str
    tests: tuple[str, ...]


AREAS = {
    "loop": Area(
        "backend/src/engine/loop",
        (
            "core/test_loop.py",
            "core/test_loop_*.py",
            "core/test_shared_encodings.py",
            "core/test_core_shares.py",
            "core/test_beam_ties.py",
            "server/test_batching.py",
        ),
    ),
    "queue": Area(
        "backend/src/queue",
        (
            "core/test_row_queue.py",
            "core/test_admission.py",
            "core/test_call_*.py",
            "core/test_cancellation.py",
            "core/test_core_shares.py",
            "core/test_out_of_memory.py",
            "core/test_reports.py",
            "core/test_supersede.py",
            "core/test_worker_pool.py",
            "core/test_loop*.py",
            "server/test_queueing.py",
            "server/test_supersede.py",
            "server/test_statistics.py",
            "server/test_metrics.py",
        ),
    ),
    "fronts": Area(
        "backend/src/serving",
        (
            "server/test_tensors.py",
            "server/test_options.py",
            "server/test_hostile_*.py",
            "server/test_unusual_inputs.py",
            "server/test_text*.py",
            "server/test_intake.py",
            "server/test_queueing.py",
            "server/test_supersede.py",
            "server/test_statistics.py",
            "server/test_metrics.py",
            "server/test_alignments.py",
            "server/test_draft*.py",
            "server/test_lifecycle.py",
            "server/test_model_files.py",
            "server/test_prepared_repository.py",
            "server/test_rollout.py",
            "server/test_request_memory.py",
        ),
    ),
    "client": Area(
        "python/ct2_triton/client",
        (
            "python/client",
            "server/client",
            "server/gateway/test_joined_texts.py",
            "python/test_arguments.py",
            "python/test_cli.py",
        ),
    ),
    "translate": Area(
        "python/ct2_triton/translate",
        (
            "python/translate",
            "server/client/test_client_cli.py",
            "server/client/test_client_f*.py",
            "server/client/test_client_runs.py",
            "server/client/test_client_stream_text.py",
            "server/client/test_client_text.py",
        ),
    ),
}
