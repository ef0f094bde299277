# SPDX-License-Identifier: Apache-2.0
"""What `make check` leaves out, so that it takes less than three minutes."""

from __future__ import annotations

from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]

# Folders and files of tests/. They take long because they build, train, convert, measure, wait for
# real times, or start servers and commands of their own. All the rest counts as everyday work.
SLOW = (
    "bench",
    "core/test_combinations.py",
    "core/test_library.py",
    "core/test_loop_draft_bias.py",
    "core/test_loop_matrix.py",
    "core/test_loop_trial.py",
    "core/test_loop_work.py",
    "core/test_packed_layers.py",
    "core/test_tokenizer.py",
    "core/test_tokenizer_proof.py",
    "deploy",
    "docs/test_demo.py",
    "docs/test_operations.py",
    "docs/test_readme.py",
    "docs/test_site.py",
    "examples",
    "packaging/test_empty_machine.py",
    "packaging/test_install.py",
    "packaging/test_new_option.py",
    "packaging/test_oldest_engine.py",
    "packaging/test_release.py",
    "packaging/test_transformers_5.py",
    "python/client/test_balancing.py",
    "python/client/test_keepalive.py",
    "python/client/test_outage.py",
    "python/client/test_pieces.py",
    "python/client/test_tokenization.py",
    "python/models/test_catalog.py",
    "python/prepare/test_added_tokens.py",
    "python/prepare/test_converted.py",
    "python/prepare/test_families.py",
    "python/prepare/test_generation.py",
    "python/prepare/test_hub.py",
    "python/prepare/test_language_lists.py",
    "python/prepare/test_languages.py",
    "python/prepare/test_memory.py",
    "python/prepare/test_refusals.py",
    "python/prepare/test_shortlist.py",
    "python/prepare/test_tokenizers.py",
    "python/prepare/test_writing.py",
    "python/test_logs.py",
    "reliability",
    "sanitize",
    "serve/test_chosen_models.py",
    "serve/test_cli.py",
    "serve/test_doctor.py",
    "serve/test_server.py",
    "server/client/test_bulk.py",
    "server/client/test_client_access.py",
    "server/client/test_client_balancing.py",
    "server/client/test_client_cli.py",
    "server/client/test_client_converted.py",
    "server/client/test_client_files.py",
    "server/client/test_client_formats.py",
    "server/client/test_client_keepalive.py",
    "server/client/test_client_pipeline.py",
    "server/client/test_fine_tuned.py",
    "server/gateway",
    "server/live",
    "server/test_demo_model.py",
    "server/test_ensemble.py",
    "server/test_environment.py",
    "server/test_lifecycle.py",
    "server/test_metrics.py",
    "server/test_mixed_load.py",
    "server/test_prepared_repository.py",
    "server/test_request_memory.py",
    "server/test_rollout.py",
    "server/test_shortlist.py",
    "server/test_supersede.py",
    "server/test_text.py",
    "server/test_text_stream.py",
    "tiny",
    "tools",
)


def is_slow(path: Path) -> bool:
    """Whether a file of tests is left out of everyday work."""
    return path.is_relative_to(_TESTS) and any(path.is_relative_to(_TESTS / one) for one in SLOW)
