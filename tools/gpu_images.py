#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the GPU's kernels ahead of time, for every architecture, into one file.

No GPU, no nvcc and no CUDA toolkit is needed: NVRTC compiles, which is in the PyPI package
nvidia-cuda-nvrtc-cu12. The same sources and the same NVRTC give the same bytes: NVRTC's choices
depend on addresses, so each image is compiled by a process of its own whose addresses are not
randomized, where the system lets a process ask for that. Registers, spilled bytes and sizes of all
kernels are printed; a kernel that spills registers is an error.

    python tools/gpu_images.py              # build/gpu_kernels.bin, for the plugin's build
    python tools/gpu_images.py --install    # beside the plugin, too; compiles what is out of date
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import multiprocessing
import os
import re
import shutil
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "backend" / "gpu"
OUTPUT = ROOT / "build" / "gpu_kernels.bin"
# T4; A100; A10; L4; H100; B200; RTX 50. PTX of compute_75 serves what comes later: the driver
# compiles it, one for CUDA 12.9 or later since that is the PTX version of this NVRTC.
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_75")
SIGNATURE = b"ct2t-gpu"
# No contraction: each sum has one order of roundings, in every kernel that computes it.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ptxas-options=-v",
    "--device-as-default-execution-space",
)
ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)
RESOURCES = re.compile(
    r"entry function '(?P<kernel>\w+)' for '\w+'.*?"
    r"(?P<spilled>\d+) bytes spill stores.*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


class CompileError(Exception):
    """NVRTC is missing, or refuses the kernels."""


@dataclass(frozen=True)
class Image:
    """The kernels for one architecture.

    Attributes:
        architecture: As NVRTC names it.
        content: A cubin, or PTX.
        registers: Of each kernel; PTX has none.
        spilled: Bytes of registers that each kernel spills.
    """

    architecture: str
    content: bytes
    registers: dict[str, int]
    spilled: dict[str, int]

    @property
    def is_ptx(self) -> bool:
        """Whether a driver has to compile it."""
        return self.architecture.startswith("compute_")

    @property
    def capability(self) -> int:
        """The compute capability that it is for, 80 for 8.0."""
        return int(self.architecture.split("_")[1])


def find_nvrtc() -> Path:
    """Find the library in the environment that this script runs in.

    Raises:
        CompileError: It is not installed.
    """
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for library in sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*")):
            return library
    raise CompileError("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")


class _Nvrtc:
    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def compile(self, architecture: str, folder: Path) -> Image:
        program = ctypes.c_void_p()
        source = (folder / "kernels.cu").read_bytes()
        self._check(
            self._library.nvrtcCreateProgram(
                ctypes.byref(program), source, b"kernels.cu", 0, None, None
            )
        )
        try:
            given = (f"--gpu-architecture={architecture}", f"--include-path={folder}", *OPTIONS)
            options = [option.encode() for option in given]
            code = self._library.nvrtcCompileProgram(
                program, len(options), (ctypes.c_char_p * len(options))(*options)
            )
            log = self._content(program, "ProgramLog").rstrip(b"\0").decode()
            if code != 0:
                raise CompileError(f"{architecture}: {log}")
            kind = "PTX" if architecture.startswith("compute_") else "CUBIN"
            content = self._content(program, kind)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))
        found = [match.groupdict() for match in RESOURCES.finditer(log)]
        return Image(
            architecture,
            content,
            {one["kernel"]: int(one["registers"]) for one in found},
            {one["kernel"]: int(one["spilled"]) for one in found},
        )

    def _content(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        content = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, content))
        return content.raw

    def _check(self, code: int) -> None:
        if code != 0:
            raise CompileError(f"NVRTC fails with error {code}")


def compile_image(architecture: str, nvrtc: Path | None = None, folder: Path = KERNELS) -> Image:
    """Compile the kernels of a folder for one architecture.

    Args:
        architecture: For example "sm_80", or "compute_75" for PTX.
        nvrtc: The library; None finds it.
        folder: Where kernels.cu is.

    Returns:
        The image.

    Raises:
        CompileError: NVRTC is missing, or refuses them.
    """
    return _Nvrtc(nvrtc or find_nvrtc()).compile(architecture, folder)


def sources_digest() -> bytes:
    """Return 64 hexadecimal digits of all sources of the kernels, as backend/CMakeLists.txt does.

    The plugin refuses images of other sources, because their arguments may differ.
    """
    sources = sorted(path for kind in ("cu", "cuh", "h") for path in KERNELS.glob(f"*.{kind}"))
    each = "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in sources)
    return hashlib.sha256(each.encode()).hexdigest().encode()


def pack(images: list[Image]) -> bytes:
    """Put images into one file, as backend/src/engine/compute/gpu/images.cc reads it."""
    entry = struct.Struct("<IIQQ")
    head = SIGNATURE + sources_digest() + struct.pack("<I", len(images))
    offset = len(head) + entry.size * len(images)
    for image in images:
        size = len(image.content)
        head += entry.pack(image.capability, int(image.is_ptx), offset, size)
        offset += size
    return head + b"".join(image.content for image in images)


def describe(image: Image) -> str:
    """Return what an image holds: its size, and of each kernel the registers."""
    lines = [f"{image.architecture}: {len(image.content):,} bytes"]
    for kernel, registers in sorted(image.registers.items()):
        lines.append(f"  {kernel:26} {registers:4} registers, spilled {image.spilled[kernel]}")
    return "\n".join(lines)


def is_current(images: Path) -> bool:
    """Return whether a file of images is of these sources, and no older than this program."""
    if not images.is_file() or images.stat().st_mtime < Path(__file__).stat().st_mtime:
        return False
    return images.read_bytes().startswith(SIGNATURE + sources_digest())


def install(images: Path) -> int:
    """Put a file of images beside the plugin of this environment."""
    from ct2_triton.engine_library import GPU_IMAGES_NAME
    from ct2_triton.serve.backend_files import find_backend_files

    beside = find_backend_files().plugin.with_name(GPU_IMAGES_NAME)
    shutil.copyfile(images, beside)
    print(f"installed: {beside}")
    return 0


def _keep_addresses() -> None:
    """Run this command again without random addresses, unless that is so or is not allowed."""
    libc = ctypes.CDLL(None)
    now = libc.personality(0xFFFFFFFF)
    if now & ADDR_NO_RANDOMIZE or libc.personality(now | ADDR_NO_RANDOMIZE) == -1:
        return
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="file to write (default: %(default)s)"
    )
    parser.add_argument(
        "--install",
        action="store_true",
        help="compile only if the sources changed, and put the file beside the plugin",
    )
    parser.add_argument("--architectures", nargs="+", default=ARCHITECTURES, metavar="NAME")
    parser.add_argument("--nvrtc", type=Path, help="NVRTC's library (default: the package's)")
    parser.add_argument("--jobs", type=int, default=2, help="compile so many at once (default: 2)")
    options = parser.parse_args()
    if options.install and is_current(options.output):
        return install(options.output)
    digest = sources_digest()
    try:
        nvrtc = options.nvrtc or find_nvrtc()
        fresh = multiprocessing.get_context("spawn")
        with fresh.Pool(options.jobs, maxtasksperchild=1) as pool:
            given = [(name, nvrtc) for name in options.architectures]
            images = pool.starmap(compile_image, given, chunksize=1)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    for image in images:
        print(describe(image))
    spilled = [f"{i.architecture} {k}" for i in images for k, n in i.spilled.items() if n > 0]
    if spilled:
        print(f"registers are spilled by: {', '.join(spilled)}", file=sys.stderr)
        return 1
    if digest != sources_digest():
        print("the kernels were changed while they were compiled; run it again", file=sys.stderr)
        return 1
    content = pack(images)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(content)
    print(f"{options.output}: {len(images)} images, {len(content):,} bytes")
    return install(options.output) if options.install else 0


if __name__ == "__main__":
    _keep_addresses()
    sys.exit(main())
