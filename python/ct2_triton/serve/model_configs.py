# SPDX-License-Identifier: Apache-2.0
"""Reads the configs of a model repository for what Triton itself refuses or does badly.

Three settings fail, or hurt, before our backend is asked; they are looked for as text, so that
neither protobuf nor a running server is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.serve.errors import ModelRepositoryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

# A string, which is kept, or a comment, which goes.
_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|#[^\n]*')
_KIND_GPU = re.compile(r"\bkind\s*:\s*KIND_GPU\b")
_OUR_BACKEND = re.compile(r"\b(?:backend|platform)\s*:\s*[\"']ctranslate2[\"']")
_RESPONSE_CACHE = re.compile(r"\bresponse_cache\s*:?\s*\{[^}]*\benable\s*:\s*(?:true|True|t|1)\b")
_QUEUE_POLICY = re.compile(
    r"\b(priority_levels|default_priority_level|allow_timeout_override"
    r"|default_timeout_microseconds|max_queue_size|priority_queue_policy)\s*:?"
)


@dataclass(frozen=True)
class ModelConfig:
    """The config of one model, as text without comments.

    Attributes:
        name: The model's folder.
        path: Its config.pbtxt.
        text: The text.
    """

    name: str
    path: Path
    text: str


def read_model_configs(repositories: Sequence[Path]) -> list[ModelConfig]:
    """Read every config.pbtxt of some repositories.

    Args:
        repositories: Folders of model folders.

    Returns:
        The configs, by repository and name; models without a config.pbtxt are left out.

    Raises:
        ModelRepositoryError: If a repository is not a folder, or a config cannot be read.
    """
    return [config for repository in repositories for config in _configs_of(repository)]


def gpu_complaints(configs: Sequence[ModelConfig]) -> list[str]:
    """Say which models ask for a GPU. For a machine without one, where Triton refuses them.

    Args:
        configs: The configs of the repository.

    Returns:
        One sentence per model.
    """
    return [
        f"model '{config.name}' asks for a GPU and this machine has none: write KIND_CPU for "
        f"KIND_GPU in {config.path}, and a compute_type that a CPU has, such as int8 or float32, "
        "where it says float16"
        for config in configs
        if _KIND_GPU.search(config.text)
    ]


def warnings(configs: Sequence[ModelConfig]) -> list[str]:
    """Say which models of our backend have settings that Triton carries out badly.

    Args:
        configs: The configs of the repository.

    Returns:
        One sentence per setting and model.
    """
    found = []
    for config in configs:
        if not _OUR_BACKEND.search(config.text):
            continue
        if _RESPONSE_CACHE.search(config.text):
            found.append(
                f"model '{config.name}' turns on the response cache, whose key ignores request "
                f"parameters and which also stores errors: the backend will refuse to load it; "
                f"remove response_cache from {config.path}"
            )
        policy = _QUEUE_POLICY.search(config.text)
        if policy:
            found.append(
                f"model '{config.name}' has a queue policy ({policy[1]} in {config.path}): "
                "Triton's dynamic batcher can then pause for 500 ms, most often with "
                "wait_for_batch; docs/reliability.md says what to use instead"
            )
    return found


def _configs_of(repository: Path) -> Iterator[ModelConfig]:
    if not repository.is_dir():
        raise ModelRepositoryError(
            f"{repository} is not a folder: name a model repository, a folder of model folders, or "
            "a model that is to be prepared, as in ct2-serve demo"
        )
    if (repository / "config.pbtxt").is_file():
        raise ModelRepositoryError(
            f"{repository} is a model: name the model repository, the folder that it lies in"
        )
    for path in sorted(repository.glob("*/config.pbtxt")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelRepositoryError(f"cannot read {path}: {error}") from error
        # The folder of models that ct2-serve was told by name holds links.
        place = path.resolve() if path.parent.is_symlink() else path
        yield ModelConfig(path.parent.name, place, _without_comments(text))


def _without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda match: match[1] or "", text)
