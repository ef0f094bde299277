# SPDX-License-Identifier: Apache-2.0
"""Tiny Hugging Face translation checkpoints, made from a seed in seconds, without any download.

Each family has the layout of the released models: a SentencePiece tokenizer that is really trained
(on `tiny_corpus`), a model with random weights, and the files that a snapshot of the hub would
hold. Weights are scaled up, so that greedy outputs vary from input to input; random models never
end by themselves, those made with `--train-steps` (NLLB, copying its input) do.

    python tests/tiny/tiny_models.py nllb --output build/nllb --converted build/nllb-ct2
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tiny_families import FAMILIES, TWO_VOCABULARIES, TinyOptions

__all__ = ["FAMILIES", "TinyOptions", "convert", "make"]


def make(family: str, output: Path, options: TinyOptions | None = None) -> Path:
    """Writes a tiny checkpoint.

    Args:
        family: A key of `FAMILIES`, or of `TWO_VOCABULARIES`.
        output: Folder to write; it must not exist, or be empty.
        options: Sizes, seed and training.

    Returns:
        The folder, which `from_pretrained` and `ct2-prepare` read.

    Raises:
        FileExistsError: `output` holds something already.
    """
    options = options or TinyOptions()
    if output.is_dir() and any(output.iterdir()):
        raise FileExistsError(f"{output} is not empty; choose another folder or remove it")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = {**FAMILIES, **TWO_VOCABULARIES}[family](Path(scratch), options)
        for tokenizer in checkpoint.tokenizers:
            tokenizer.save_pretrained(output)
    checkpoint.model.save_pretrained(output)
    return output


def convert(checkpoint: Path, output: Path, quantization: str | None = None) -> Path:
    """Converts a checkpoint with CTranslate2's own converter.

    Args:
        checkpoint: Folder that `make` wrote.
        output: CTranslate2 directory to write; replaced when it exists.
        quantization: Type of the stored weights, for example "int8"; None keeps float32.

    Returns:
        `output`.
    """
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(checkpoint)).convert(
        str(output), quantization=quantization, force=True
    )
    return output


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--output", type=Path, help="folder for the Hugging Face checkpoint")
    parser.add_argument("--converted", type=Path, help="folder for a CTranslate2 model as well")
    parser.add_argument("--quantization", help="of the CTranslate2 model (default: float32)")
    parser.add_argument("--force", action="store_true", help="replace the folders")
    for name, kind in (
        ("pieces", int),
        ("vocab-size", int),
        ("d-model", int),
        ("layers", int),
        ("max-positions", int),
        ("d-kv", int),
        ("train-steps", int),
        ("seed", int),
        ("corpus", Path),
        ("algorithm", str),
    ):
        default = TinyOptions.__dataclass_fields__[name.replace("-", "_")].default
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"default: {default}")
    parser.add_argument("--byte-fallback", action="store_true", help="pieces for all bytes")
    return parser.parse_args(arguments)


def main() -> int:
    """Makes what the command line asks for and says where it is."""
    args = parse_arguments()
    if not args.output and not args.converted:
        print("tiny_models: give --output, --converted or both", file=sys.stderr)
        return 2
    options = TinyOptions(
        **{name: getattr(args, name) for name in TinyOptions.__dataclass_fields__}
    )
    with tempfile.TemporaryDirectory() as scratch:
        output = args.output or Path(scratch) / args.family
        if args.force and output.exists():
            shutil.rmtree(output)
        make(args.family, output, options)
        if args.converted:
            if args.converted.exists() and not args.force:
                print(f"tiny_models: {args.converted} exists; add --force", file=sys.stderr)
                return 1
            convert(output, args.converted, args.quantization)
    for path in filter(None, (args.output, args.converted)):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
