# SPDX-License-Identifier: Apache-2.0
"""Check a vocabulary shortlist with CTranslate2: that it is read, and limits the tokens."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import VerificationError
from ct2_triton.prepare.shortlist import link_with_map
from ct2_triton.prepare.verification.comparison import ConvertedModel
from ct2_triton.prepare.verification.probes import PROBE_TEXTS, some_languages

if TYPE_CHECKING:
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepare.shortlist import Shortlist
    from ct2_triton.prepared_model import TokenRules

_MAX_OUTPUT_TOKENS = 32


def add_shortlist(new: NewModel, rules: TokenRules, shortlist: Shortlist | None) -> dict[str, Any]:
    """Write the shortlist's file, and translate each probe with and without it.

    CTranslate2 cannot read the lists of several languages, so each is checked alone, as a vmap.txt
    next to links to the other files.

    Returns:
        The entry for the manifest, beside others; empty without a shortlist.

    Raises:
        VerificationError: CTranslate2 does not read it, or generates a token that is not on it.
    """
    if shortlist is None:
        return {}
    shortlist.write(new.weights)
    if shortlist.lists:
        found = [_try_alone(own, new.weights, rules, new.tokenizer) for own in shortlist.each()]
        probes, changed = (sum(counts) for counts in zip(*found, strict=True))
    else:
        probes, changed = _try(shortlist, new.weights, rules, new.tokenizer)
    new.report(
        f"shortlist: {changed} of {probes} probes, some of them odd, get another answer with it"
    )
    record = {**shortlist.record, "probes": probes, "probes_changed": changed}
    return {"shortlist": record}


def _try_alone(
    shortlist: Shortlist, model: Path, rules: TokenRules, tokenizer_folder: Path
) -> tuple[int, int]:
    with TemporaryDirectory() as folder:
        linked = link_with_map(shortlist.tokens, model, Path(folder))
        return _try(shortlist, linked, rules, tokenizer_folder)


def _try(
    shortlist: Shortlist, model: Path, rules: TokenRules, tokenizer_folder: Path
) -> tuple[int, int]:
    pieces = read_pieces(tokenizer_folder, rules)
    source = next(iter(some_languages(rules, "source")), None)
    targets = shortlist.languages or (None,)
    rows, prefixes = [], []
    for number, text in enumerate(PROBE_TEXTS):
        target = targets[number % len(targets)]
        ids = rules.input_ids(pieces.encode(text), source, target)
        if rules.max_source_tokens is not None and len(ids) > rules.max_source_tokens:
            continue
        rows.append(ids)
        prefixes.append(rules.target_prefix(target))
    converted = ConvertedModel(model)
    restricted, free = (
        converted.translate(
            rows, prefixes, beam_size=1, max_decoding_length=_MAX_OUTPUT_TOKENS, use_vmap=use_vmap
        )
        for use_vmap in (True, False)
    )
    written = {converted.target_tokens[i] for answer in restricted for i in answer}
    strange = written - set(shortlist.tokens)
    if strange:
        raise VerificationError(
            f"with the vocabulary shortlist CTranslate2 writes {sorted(strange)[:3]}, which is not "
            "on it"
        )
    changed = sum(a != b for a, b in zip(restricted, free, strict=True))
    return len(rows), changed
