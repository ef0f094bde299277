# SPDX-License-Identifier: Apache-2.0
"""The two tiers of tests: what `make test` leaves to `make test-long`, and why."""

from __future__ import annotations

import re

# What a long test may take, beside two others on a slow machine; those of `make test` 15 minutes.
LONGEST_S = 3600

_CALLS = "the loop's half is in `make test`; that rows run as calls is not the subject"
_WIDE = "takes minutes; `make test` has the narrow shape, in int8"
_DEMO = "for whoever makes the demo's model again"
_MANY = "the same with many more random rows"
_COMPILES = "compiles a program, and counts or breaks what it does"
_EMULATED = "the emulated GPU is slow; `make test` runs it with other models or options"
_PINGS = "waits for gRPC's own clocks; the shorter tests of silence are in `make test`"

# Folders and files of tests/, single tests, and in brackets one value of a parameter. Each error
# that a client can cause, each option and each family keep a test in `make test`.
LONG = {
    "bench/test_baselines.py": "the servers that this one is compared with",
    "bench/test_command.py::test_a_shape_is_made_and_its_sentences_end": "a model of real size",
    "bench/test_marian.py::test_the_shape_copies_in_every_library[ctranslate2-int8]": (
        "`make test` has float32, and int8 in bench/test_shapes.py"
    ),
    "bench/test_shapes.py::test_a_prepared_shape_copies[float32]": _WIDE,
    "bench/test_shapes.py::test_a_prepared_shape_copies[wide]": _WIDE,
    "bench/test_shapes.py::test_generate_copies[wide]": _WIDE,
    "bench/test_workload.py::test_the_sentences_are_those_that_the_grammar_gives": (
        "draws 2,000 sentences"
    ),
    "bench/test_machine_check.py"
    "::test_a_step_that_fails_is_named_and_the_others_go_on": "all steps of a check of machines",
    "bench/test_machine_check.py"
    "::test_the_short_check_on_a_processor_passes_and_writes_its_report": "the same",
    **{
        f"core/test_gpu_decoder.py::test_{name}": _EMULATED
        for name in (
            "a_row_has_the_same_bits_alone_and_in_company[bfloat16]",
            "no_order_of_threads_changes_anything[3]",
            "rules_are_ctranslate2s[two-rules]",
        )
    },
    "core/test_gpu_faults.py": "builds the kernels once for each fault",
    **{
        f"core/test_gpu_loop.py::test_{name}": _EMULATED
        for name in (
            "alignments_and_replaced_tokens_are_ctranslate2s[nllb]",
            "alignments_and_replaced_tokens_are_ctranslate2s[t5]",
            "beams_alternatives_and_biased_searches_are_ctranslate2s[marian]",
            "drafts_change_no_answer[marian]",
            "drafts_change_no_answer[t5]",
            "draws_that_take_turns_beside_a_light_row_come_to_their_ends",
            "float32_answers_are_those_of_the_row_alone[marian]",
            "float32_answers_are_those_of_the_row_alone[nllb]",
            "int8_weights_give_ctranslate2s_tokens_or_differ_where_two_are_near[float32]",
            "penalties_of_alternatives_leave_out_the_forced_tokens[2]",
        )
    },
    "core/test_hand_over.py": _COMPILES,
    "core/test_loop_beams.py::test_rule[many]": _MANY,
    "core/test_loop_kernels.py::test_tokens_of_a_row_see_each_other[130]": "longer rows",
    "core/test_loop_matrix.py[many]": _MANY,
    "core/test_out_of_memory.py": _COMPILES,
    "core/test_packed_layers.py::test_our_encoder_answers_as_ctranslate2[many]": _MANY,
    "core/test_queue_costs.py": _COMPILES,
    "core/test_tokenizations.py": _COMPILES,
    "core/test_calls.py"
    "::test_rows_that_wait_while_the_model_leaves_have_it_come_back": "waits ten seconds",
    "core/test_tokenizer_proof.py::test_every_difference_has_a_cause[many]": _MANY,
    "deploy/test_containers.py": "builds the image",
    "deploy/test_cut_links.py": "waits until a silent machine counts as dead",
    "deploy/test_pod_commands.py"
    "::test_a_preparation_that_was_killed_half_way_or_had_other_arguments_is_done_again": (
        "prepares the demo six times"
    ),
    "docs/test_operations.py::test_the_cost_of_counting_is_measured": "a measurement",
    "docs/test_pages.py::test_a_page_runs_and_prints_what_it_shows[docs/commands.md]": (
        "starts Ray; the commands have tests of their own in `make test`"
    ),
    "packaging/test_empty_machine.py": "builds a Debian machine",
    "packaging/test_gpu_images.py::test_no_kernel_spills_registers": "compiles a lot",
    "packaging/test_gpu_images.py"
    "::test_the_same_sources_give_the_same_bytes": "compiles the kernels twice",
    "packaging/test_house_rules.py::test_every_header_compiles_alone": "compiles each header",
    "packaging/test_install.py": "compiles the whole backend again, for a wheel",
    "packaging/test_new_option.py": "compiles parts of the backend, to hold a rule of this code",
    "packaging/test_oldest_engine.py::test_the_backend_passes_on_the_oldest": "another engine",
    "packaging/test_oldest_engine.py::test_the_core_passes_on_the_oldest": "another engine",
    **{
        f"packaging/test_other_machines.py::test_{name}": "a share of the tests once more"
        for name in (
            "a_user_without_rights",
            "no_network",
            "a_processor_without_avx512",
            "64_cores",
            "a_source_archive",
        )
    },
    **{
        f"packaging/test_release.py::test_{name}": "builds what a release publishes"
        for name in (
            "a_package_index_takes_all",
            "links_of_the_readme_work_on_a_package_index",
            "the_source_distribution_builds",
            "the_source_distribution_has_what_the_backend_is_made_of",
            "the_toolkit_runs_anywhere",
        )
    },
    "packaging/test_transformers_5.py::test_models_are_prepared_with_the_newest": "another library",
    "python/client/test_keepalive.py"
    "::test_a_server_with_default_ping_rules_answers_a_call_of_25_s": _PINGS,
    "python/prepare/test_hub.py"
    "::test_a_cut_transfer_is_resumed_in_the_same_run": "a next run resumes it in `make test`",
    **{
        f"python/prepare/test_writing.py::test_a_signal_to_the_command_leaves_nothing[{code}]": (
            "another signal does the same in `make test`"
        )
        for code in (129, 130)
    },
    "reliability/test_cancel_storm.py[calls]": _CALLS,
    "reliability/test_faults.py::test_a_full_disk_fails_ct2_prepare_with_a_sentence[tiny]": (
        "converts with PyTorch; `make test` fills the disk with the demo"
    ),
    "reliability/test_fuzz.py[calls]": _CALLS,
    "reliability/test_overload.py[calls]": _CALLS,
    "reliability/test_prove.py::test_every_proof_runs_and_its_line_is_in_the_table": "each proof",
    "reliability/test_reload.py[calls]": _CALLS,
    "reliability/test_soak.py": "a soak",
    "sanitize": "compiles everything with sanitizers, or for fuzzing",
    "server/client/test_bulk.py::test_an_interrupted_run_is_said_to_go_on": (
        "starts Ray once more; `make test` interrupts ct2-translate without it"
    ),
    "server/client/test_bulk.py"
    "::test_nothing_is_lost_when_the_run_a_worker_and_a_server_are_killed": "three runs of Ray",
    "server/client/test_client_keepalive.py"
    "::test_a_server_with_tritons_own_ping_rules_answers_a_long_call": _PINGS,
    "server/client/test_client_keepalive.py::test_ct2_serve_lets_clients_ping": _PINGS,
    "server/client/test_client_pipeline.py[many]": "the same with more sentences",
    "server/test_demo_model.py::test_an_emulated_gpu_gives_ctranslate2s_answers": _EMULATED,
    "server/test_emulated_gpu.py::test_answers_are_ctranslate2s_and_no_call_runs[nllb]": _EMULATED,
    "server/test_emulated_gpu.py::test_answers_are_ctranslate2s_and_no_call_runs[t5]": _EMULATED,
    "server/live/test_pages.py::test_two_minutes_of_updates_keep_memory_flat": "a soak",
    "tiny/test_tiny_models.py"
    "::test_a_trained_model_ends_by_itself_at_about_the_length_of_its_input": "trains a model",
    "tiny/test_tiny_models.py::test_the_command": "the makers that it calls are in `make test`",
    **{
        f"tools/test_demo_commands.py::test_{name}": _DEMO
        for name in ("alignments_find_values", "text_is_parallel")
    },
    "tools/test_demo_training.py": _DEMO,
    "tools/test_real_model.py::test_a_checkpoint_of_the_hub_becomes_a_page_of_results": (
        "a measurement"
    ),
    "tools/test_real_model.py::test_a_checkpoint_of_a_released_models_sizes_becomes_a_page": (
        "a measurement"
    ),
    "tools/test_roofline.py::test_the_limits_of_this_machine_are_measured": "a measurement",
}


def _pattern(entry: str) -> re.Pattern[str]:
    """What the ids of an entry's tests look like."""
    place, _, value = entry.rstrip("]").partition("[")
    name = rf"tests/{re.escape(place)}"
    rest = rf".*\[(.*-)?{re.escape(value)}(-.*)?\]" if value else r"([/:\[].*)?"
    return re.compile(name + rest)


_PATTERNS = [_pattern(entry) for entry in LONG]


def is_long(test: str) -> bool:
    """Whether a test, which is given by its id, is left to `make test-long`."""
    return any(pattern.fullmatch(test) for pattern in _PATTERNS)
