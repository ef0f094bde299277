# SPDX-License-Identifier: Apache-2.0
"""Several processes run the tests (pytest-xdist): which tests stay together, and which begin."""

from __future__ import annotations

from typing import Any

# Folders and files of tests/ that share what is dear to make (a build, a server, prepared models):
# one process runs those of a line. Each other file is a group of its own. Groups that take longest
# begin, so that no process waits for another at the end.
GROUPS: tuple[tuple[str, ...], ...] = (
    ("sanitize/test_address_sanitizer.py",),
    ("sanitize/test_thread_sanitizer.py", "sanitize/test_fuzz_targets.py"),
    ("deploy/test_containers.py",),
    ("packaging/test_oldest_engine.py",),
    ("packaging/test_empty_machine.py", "packaging/test_install.py"),
    ("core/test_gpu_loop.py",),
    ("serve/test_chosen_models.py",),
    ("server/client/test_bulk.py",),
    ("serve/test_doctor.py",),
    ("server/client/test_client_cli.py",),
    ("server/test_rollout.py",),
    ("server/test_emulated_gpu.py",),
    ("server/test_prepared_repository.py",),
)


def scheduler(config: Any, log: Any) -> Any:
    """One that gives each process a group after the other."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def group_of(test: str) -> str:
    """The group of a test, which is given by its id."""
    number = order(test)
    return GROUPS[number][0] if number < len(GROUPS) else test.partition("::")[0]


def order(test: str) -> int:
    """When its group begins: the groups above one after the other, and then all others."""
    file = f"{test.partition('::')[0]}/"
    begins = ([file.startswith(f"tests/{one}/") for one in group] for group in GROUPS)
    return next((number for number, begin in enumerate(begins) if any(begin)), len(GROUPS))
