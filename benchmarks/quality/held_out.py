# SPDX-License-Identifier: Apache-2.0
"""Make the held-out set for the verdicts: odd inputs, and faulty outputs with their flags.

Thresholds and rules of the verdicts must not be tuned on this set, nor on its seed with other
sentences: it measures them once they are fixed. It was written without sight of their code.

Inputs are JSON lines `{"kind", "text", "base", "detail"}`. `base` is the clean sentence that the
text was made of, or null. `detail` is what was done: a count, a language, a value.

    clean             the control: nothing changed
    word_repeated     one word 2 to 40 times           phrase_repeated   2 to 5 words 2 to 40 times
    sentence_repeated the sentence 2 to 12 times       letter_repeated   one letter 4 to 40 times
    target_language   a sentence of a target language  unseen_language   20 others, in 10 scripts
    mixed_languages   English and a target language    long_text         200 words
    capitals          all capitals                     lower_case        no capitals, no punctuation
    one_word          one word                         numbers_only      numbers, dates, telephones
    word_salad        the words shuffled               gibberish         random letters
    half_sentence     cut before or after a word       fillers           um, you know
    restarts          speech that starts again         typing_errors     1 to 5 of them
    url, email, placeholder, number                    one or two of them in the sentence
    markup            HTML, Markdown, SSML, subtitles  emoji             1 to 4 of them
    punctuation_only  no word at all                   unseen_names      new names in it
    silence           what recognizers write, or people say, in silence
    odd_characters    invisible, full-width, decomposed, of other alphabets

Faults are JSON lines `{"kind", "flags", "may", "source", "target", "translation", "clean"}`.
`flags` must be found, those of `may` are justified too, and every other one is a false alarm.
`unsure` is not judged: it rests on scores, not on the text. `values` is added to `flags` where a
number is missing or new because of the fault, and to `may` where only its count changed.

    repeats           loop_word, loop_phrase, loop_sentence, loop_inside, loop_at_end, loop_letters
    copied            copied, copied_nearly (lower case, no punctuation, or one word translated)
    language          other_language (the same sentence), other_language_unrelated
    values            number_removed, number_changed, number_added; value_removed, value_changed,
                      value_added: a URL, an address or a placeholder
    uncovered         sentence_dropped (of two), middle_dropped (of three), clause_cut, end_cut
    invented          sentence_appended, clause_appended, stock_appended
    uncovered and invented         unrelated
    length and uncovered           too_short
    length and invented            too_long
    length            empty
    none              clean, clean_two_sentences, clean_three_sentences, clean_value, clean_doubled,
                      clean_identical, clean_capitals, clean_lower_case, clean_repetition
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from held_out_faults import FAULTS, labelled
from held_out_inputs import INPUTS
from held_out_material import SEED, Fault, Material, Pair, Row


def make_inputs(m: Material, each: int) -> Iterable[dict[str, Any]]:
    """Up to `each` different odd inputs of every kind."""
    for kind, make in INPUTS.items():
        rows: dict[str, Row] = {}
        for _ in range(each * 30):
            if len(rows) < each:
                row = make(m)
                rows.setdefault(row[0], row)
        for text, base, detail in rows.values():
            yield {"kind": kind, "text": text, "base": base, "detail": detail}


def make_faults(m: Material, each: int) -> Iterable[dict[str, Any]]:
    """Up to `each` different outputs of every kind, with the flags that they must get."""
    for kind, make in FAULTS.items():
        faults: dict[tuple[str, str, str], Fault] = {}
        for _ in range(each * 30):
            fault = make(m) if len(faults) < each else None
            if fault:
                key = (fault.pair.source, fault.pair.target, fault.translation)
                faults.setdefault(key, labelled(fault))
        for fault in faults.values():
            yield {
                "kind": kind,
                "flags": list(fault.flags),
                "may": list(fault.may),
                "source": fault.pair.source,
                "target": fault.pair.target,
                "translation": fault.translation,
                "clean": fault.pair.translation,
            }


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines and print how many there are of each kind."""
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            counts[row["kind"]] += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{path}: {sum(counts.values())} rows, {len(counts)} kinds: {dict(counts)}")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sentences", type=Path, required=True, help="clean English sentences, one a line"
    )
    parser.add_argument(
        "--pairs", type=Path, required=True, help="JSON lines with source, target and translation"
    )
    parser.add_argument(
        "--inputs", type=Path, required=True, help="JSON lines of odd inputs to write"
    )
    parser.add_argument("--faults", type=Path, required=True, help="JSON lines of outputs to write")
    parser.add_argument("--each", type=int, default=100, help="rows of each kind")
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    lines = args.sentences.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(x) for x in args.pairs.read_text(encoding="utf-8").splitlines()]
    text = yaml.safe_load(
        Path(__file__).with_name("held_out_text.yaml").read_text(encoding="utf-8")
    )
    pairs = [Pair(row["source"], row["target"], row["translation"]) for row in rows]
    sentences = [line for line in lines if line]
    write(
        args.inputs,
        make_inputs(Material(random.Random(args.seed), sentences, pairs, text), args.each),
    )
    write(
        args.faults,
        make_faults(Material(random.Random(args.seed), sentences, pairs, text), args.each),
    )


if __name__ == "__main__":
    main()
