# SPDX-License-Identifier: Apache-2.0
"""The GPU's kernels, compiled for GPUs on a machine without one."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ct2_triton import _core
from gpu_images import (
    ADDR_NO_RANDOMIZE,
    ARCHITECTURES,
    KERNELS,
    CompileError,
    Image,
    compile_image,
    describe,
    find_nvrtc,
    is_current,
    pack,
)
from support.checkout import ROOT
from support.commands import run


def test_a_gpu_gets_the_nearest_image_of_its_generation(tmp_path: Path) -> None:
    packed = tmp_path / "kernels.bin"
    packed.write_bytes(pack([Image(name, name.encode(), {}, {}) for name in ARCHITECTURES]))

    for capability, image in [
        (75, "sm_75"),
        (80, "sm_80"),
        (87, "sm_86"),
        (89, "sm_89"),
        (90, "sm_90"),
        (103, "sm_100"),
        (110, "compute_75"),
        (120, "sm_120"),
        (121, "sm_120"),
    ]:
        assert _core.gpu_image(str(packed), capability) == image.encode(), capability
    with pytest.raises(_core.Error, match="no kernels for a GPU of compute capability 7"):
        _core.gpu_image(str(packed), 70)


def test_images_of_other_sources_are_refused(tmp_path: Path) -> None:
    """Their arguments may differ, so a step would compute anything."""
    packed = tmp_path / "kernels.bin"
    content = pack([Image("sm_80", b"sm_80", {}, {})])
    packed.write_bytes(content)
    assert _core.gpu_image(str(packed), 80) == b"sm_80"
    assert is_current(packed)

    other = bytearray(content)
    other[8] ^= 1
    packed.write_bytes(other)

    with pytest.raises(_core.Error, match="of another version of their sources than this build"):
        _core.gpu_image(str(packed), 80)
    assert not is_current(packed)


def test_kernels_that_do_not_compile_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "gpu"
    shutil.copytree(KERNELS, folder)
    with (folder / "rows.cuh").open("a") as stream:
        stream.write("nonsense\n")

    with pytest.raises(CompileError, match=r"(?s)compute_75: .*nonsense"):
        compile_image("compute_75", folder=folder)


@pytest.mark.parametrize("architecture", [a for a in ARCHITECTURES if a.startswith("sm_")])
def test_no_kernel_spills_registers(architecture: str) -> None:
    image = compile_image(architecture)

    assert {kernel: n for kernel, n in image.spilled.items() if n > 0} == {}
    assert set(image.registers) == kernels_of(architecture)
    assert max(image.registers.values()) <= 255
    assert re.search(r"choose +\d+ registers, spilled 0", describe(image))


def test_the_command_writes_what_the_engine_reads(tmp_path: Path) -> None:
    packed = tmp_path / "kernels.bin"

    written = _run("--output", packed, "--architectures", "compute_75")
    assert (written.returncode, written.stderr) == (0, "")
    assert "1 images" in written.stdout
    assert b".target sm_75" in _core.gpu_image(str(packed), 90)

    none = _run("--output", packed, "--architectures", "sm_1", "--nvrtc", find_nvrtc())
    assert none.returncode == 1
    assert "sm_1" in none.stderr


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    libc = ctypes.CDLL(None)
    before = libc.personality(0xFFFFFFFF)
    if libc.personality(before | ADDR_NO_RANDOMIZE) == -1:
        pytest.skip("a process may not ask for fixed addresses here")
    libc.personality(before)
    contents = []
    for name in ("first", "second"):
        written = _run("--output", tmp_path / name, "--architectures", "compute_75", "sm_90")
        assert written.returncode == 0, written.stderr
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, ROOT / "tools" / "gpu_images.py", *arguments, code=None)


def kernels_of(architecture: str) -> set[str]:
    """The names of all kernels; bfloat16 needs sm_80."""
    types = {"f32": 1, "f16": 1, "i8": 0} | ({} if architecture == "sm_75" else {"bf16": 1})
    names = {"scan", "choose", "align", "pack", "gather"}
    for name, attends in types.items():
        names |= {f"product_{name}_{x}_{n}" for x in ("norm", "plain") for n in ("one", "many")}
        names |= {f"embed_{name}"} | ({f"attention_{name}"} if attends else set())
    return names
