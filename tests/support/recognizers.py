# SPDX-License-Identifier: Apache-2.0
"""Speech for tests, and the packages in .venvs/live, which borrow what they need from .venv."""

from __future__ import annotations

import os
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest

from support.debian_packages import debian_command

_FOLDER = Path(__file__).resolve().parents[2] / ".venvs" / "live"
_RATE = 16_000


def live_packages() -> dict[str, str]:
    """The environment of a process that finds them."""
    if not (_FOLDER / ".installed").exists():
        pytest.skip("no .venvs/live: make .venvs/live/.installed")
    return {**os.environ, "PYTHONPATH": str(_FOLDER)}


def speak(file: Path, *sentences: str) -> Path:
    """Has espeak-ng say sentences, with a pause behind each; gives what its own file is called."""
    own, said = file.with_name(f"own-{file.name}"), []
    for sentence in sentences:
        command = [debian_command("espeak-ng"), "-v", "en-us", "-s", "140", "-w", own, sentence]
        subprocess.run(command, check=True, timeout=600)
        with wave.open(str(own)) as wav:
            rate = wav.getframerate()
            voice = np.frombuffer(wav.readframes(wav.getnframes()), "<i2")
        times = np.arange(0, len(voice) / rate, 1 / _RATE)
        said += [np.interp(times * rate, np.arange(len(voice)), voice), np.zeros(_RATE)]  # a second
    with wave.open(str(file), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(_RATE)
        wav.writeframes(np.concatenate(said).astype("<i2").tobytes())
    return own
