# SPDX-License-Identifier: Apache-2.0
"""A repository to start servers on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.repository import write_model


@pytest.fixture
def repository(tmp_path: Path, nllb_engine_model: Path) -> Path:
    """One with the model `nllb`: it loads at once, which a Python model does not."""
    write_model(tmp_path / "repository", "nllb", nllb_engine_model)
    return tmp_path / "repository"
