# SPDX-License-Identifier: Apache-2.0
"""Makes the demo model: grammar, corpus, tokenizer, training, evaluation, export.

python demo_model/train_demo lint               checks the grammar and prints samples
python demo_model/train_demo sample --count 60  prints sentences in one language or in all
python demo_model/train_demo text               writes parallel text, a file for each language
python demo_model/train_demo train              trains (or goes on) and writes the checkpoint
python demo_model/train_demo evaluate           scores a checkpoint on held-out text, served
python demo_model/train_demo alignments         says how often ALIGNMENTS finds the right words
python demo_model/train_demo package            puts a checkpoint, also converted, into the package
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ct2_triton.arguments import count
from train_demo.languages import LANGUAGES
from train_demo.sizes import SIZES

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "train_demo"
SHIPPED = ROOT / "python" / "ct2_triton" / "demo_model" / "checkpoint"
SEED = 2026
INSTALL = "make install, or pip install ./python '.[server,convert,train]'"


def lint(args: argparse.Namespace) -> int:
    """Check the grammar; print two samples of each template of one file."""
    from train_demo.grammar import check_samples, read_grammar

    grammar = read_grammar(only=args.file.stem if args.file else None)
    mistakes = check_samples(grammar, args.draws)
    rng = random.Random(args.seed)
    if args.file:
        for template in grammar.templates:
            print(f"# {template.id}")
            for _ in range(2):
                for language, text in template.draw(rng).texts.items():
                    print(f"  {language}  {text}")
    print("\n".join(mistakes))
    print(f"{len(grammar.templates)} templates, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


def sample(args: argparse.Namespace) -> int:
    """Print random sentences with their source, or English held-out sentences alone."""
    from train_demo.corpus import held_out_sentences
    from train_demo.grammar import read_grammar

    grammar = read_grammar(only=args.domain)
    if args.held_out:
        for sentence in held_out_sentences(grammar, args.count, args.seed):
            print(sentence.texts["eng"])
        return 0
    rng = random.Random(args.seed)
    for number in range(args.count):
        sentence = rng.choice(grammar.templates).draw(rng)
        print(f"{number + 1}. [{sentence.template}] {sentence.texts['eng']}")
        for language in [args.language] if args.language else LANGUAGES[1:]:
            print(f"   {language}  {sentence.texts[language]}")
    return 0


def text(args: argparse.Namespace) -> int:
    """Write sentences that training may see, or held-out ones, line by line in all languages."""
    from train_demo.corpus import held_out_sentences, training_sentences
    from train_demo.grammar import read_grammar

    grammar = read_grammar()
    draw = held_out_sentences if args.held_out else training_sentences
    sentences = list(draw(grammar, args.count, args.seed))
    args.folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        lines = "".join(f"{sentence.texts[language]}\n" for sentence in sentences)
        (args.folder / f"{language}.txt").write_text(lines, encoding="utf-8")
    return 0


def train(args: argparse.Namespace) -> int:
    """Trains a model, or goes on with a training that was cut, and writes its checkpoint."""
    from train_demo.export import write_checkpoint, write_record
    from train_demo.training import train as run_training

    folder = args.folder or BUILD / args.size
    size = SIZES[args.size]
    if args.sentences:
        size = replace(size, cycles=(replace(size.cycles[0], sentences=args.sentences),))
    model, tokenizer = run_training(size, folder, args.seed, args.threads)
    checkpoint = folder / "checkpoint"
    write_checkpoint(model, tokenizer, checkpoint)
    training = {"size": args.size, **asdict(size), "seed": args.seed, "threads": args.threads}
    write_record(checkpoint, training)
    print(checkpoint)
    return 0


def evaluate(args: argparse.Namespace) -> int:
    """Serve a checkpoint at float32 and int8, score it, print the table and what was wrong."""
    from train_demo.corpus import held_out_sentences
    from train_demo.evaluation import describe, table
    from train_demo.evaluation import evaluate as scores_of
    from train_demo.grammar import read_grammar

    print(args.checkpoint)
    grammar = read_grammar()
    sentences = held_out_sentences(grammar, args.count, args.seed)
    scores = scores_of(args.checkpoint, sentences)
    for score in scores:
        for source, want, got in score.wrong[: args.show]:
            print(f"{score.precision} {score.language}: {source}\n  - {want}\n  + {got}")
    print(describe(grammar, sentences))
    print(table(scores))
    return 0


def alignments(args: argparse.Namespace) -> int:
    """Print for each choice of heads how often a value's tokens come from that value."""
    from train_demo.alignments import choices, share_right
    from train_demo.corpus import held_out_sentences
    from train_demo.grammar import read_grammar

    sentences = held_out_sentences(read_grammar(), args.count, args.seed)
    print("| layer | heads | right |\n|---|---|---|")
    for layer, heads in choices():
        share, tokens = share_right(sentences, layer, heads)
        print(f"| {layer} | {', '.join(map(str, heads))} | {share:.1%} |")
    print(f"{tokens} tokens of values, {len(sentences)} sentences")
    return 0


def package(args: argparse.Namespace) -> int:
    """Convert a checkpoint and put both into the package."""
    from train_demo.export import convert_for_package

    convert_for_package(args.checkpoint)
    return 0


def _checkpoint(text: str) -> Path:
    path = Path(text)
    if not (path / "config.json").is_file():
        raise argparse.ArgumentTypeError(f"there is no checkpoint in {text}; train writes one")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="train_demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("lint", help=lint.__doc__)
    command.add_argument("--file", type=Path, help="one file of the grammar (default: all)")
    command.add_argument("--draws", type=count, default=200, help="sentences checked of each")
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=lint)
    command = commands.add_parser("sample", help=sample.__doc__)
    command.add_argument("--count", type=count, default=60, help="sentences")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--language", choices=LANGUAGES[1:])
    command.add_argument("--domain", help="name of one file of the grammar, for example weather")
    command.add_argument("--held-out", action="store_true", help="English sentences not trained on")
    command.set_defaults(run=sample)
    command = commands.add_parser("text", help=text.__doc__)
    command.add_argument("folder", type=Path, help="gets eng.txt, deu.txt, ...")
    command.add_argument("--count", type=count, default=40_000, help="sentences")
    command.add_argument("--seed", type=int, default=5)
    command.add_argument("--held-out", action="store_true", help="sentences not trained on")
    command.set_defaults(run=text)
    command = commands.add_parser("train", help=train.__doc__)
    command.add_argument("--size", choices=SIZES, default="small")
    command.add_argument("--folder", type=Path, help="default: build/train_demo/SIZE")
    command.add_argument("--seed", type=int, default=SEED)
    command.add_argument("--threads", type=count, default=2)
    command.add_argument(
        "--sentences",
        type=count,
        help="a trial of one cycle on so many (default: all cycles of the size, sizes.py)",
    )
    command.set_defaults(run=train)
    command = commands.add_parser("evaluate", help=evaluate.__doc__)
    command.add_argument(
        "--checkpoint",
        type=_checkpoint,
        default=str(SHIPPED),
        help="default: the one in the package",
    )
    command.add_argument("--count", type=count, default=2000, help="sentences")
    command.add_argument("--show", type=int, default=10, help="differences printed per language")
    command.add_argument("--seed", type=int, default=1)
    command.set_defaults(run=evaluate)
    command = commands.add_parser("alignments", help=alignments.__doc__)
    command.add_argument("--count", type=count, default=600, help="sentences")
    command.add_argument("--seed", type=int, default=1)
    command.set_defaults(run=alignments)
    command = commands.add_parser("package", help=package.__doc__)
    command.add_argument(
        "--checkpoint",
        type=_checkpoint,
        default=str(BUILD / "small" / "checkpoint"),
        help="default: the last training of small",
    )
    command.set_defaults(run=package)
    return parser


def main() -> int:
    """Run one command.

    Returns:
        The exit code: 0 done, 1 failed, with a sentence on stderr, 130 interrupted.
    """
    args = _parser().parse_args()
    try:
        from ct2_triton.errors import Ct2TritonError
        from train_demo.kinds import GrammarError

        return int(args.run(args))
    except ModuleNotFoundError as error:
        print(f"train_demo: {error.name} is not installed: {INSTALL}", file=sys.stderr)
    except (Ct2TritonError, GrammarError) as error:
        print(f"train_demo: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has ended; Python would write again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
