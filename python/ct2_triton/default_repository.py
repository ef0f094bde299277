# SPDX-License-Identifier: Apache-2.0
"""The model repository of all commands and of the client, unless another is given."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY_VARIABLE = "CT2_MODEL_REPOSITORY"
REPOSITORY_NAME = "model_repository"
DEFAULT_TEXT = f"default: ./{REPOSITORY_NAME}"  # for --help


def default_repository() -> Path:
    """Return CT2_MODEL_REPOSITORY, else `./model_repository`; it may be missing."""
    return Path(os.environ.get(REPOSITORY_VARIABLE) or REPOSITORY_NAME)
