# SPDX-License-Identifier: Apache-2.0
"""What a client needs to know about the ids of a converted model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.errors import UnsupportedModelError
from ct2_triton.prepare.languages import names_of_other_scripts, with_aliases
from ct2_triton.prepare.rules import duplicate_ids
from ct2_triton.prepared_model import NAMED_PIECES, TokenRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ct2_triton.prepare.converted.languages import Languages
    from ct2_triton.prepare.converted.model_header import ModelHeader
    from ct2_triton.prepare.converted.vocabularies import Vocabularies

_PADDING = ("<pad>", "<blank>")
# How models of OpenNMT-py and OpenNMT-tf begin an answer; their sources have no end token.
_START_OF_OPENNMT = "<s>"


def build_rules(
    tokenizer: str,
    vocabularies: Vocabularies,
    config: Mapping[str, object],
    header: ModelHeader,
    known: Languages,
) -> TokenRules:
    """Build the rules of one model."""
    source = {token: i for i, token in reversed(list(enumerate(vocabularies.source)))}
    unknown, end = (str(config.get(key) or usual) for key, usual in _USUAL.items())
    starts = config.get("decoder_start_token", _START_OF_OPENNMT) is None  # mBART-25
    languages = with_aliases(known.entries, known.tags)
    special = [source.get(token) for token in (end, *_marks(config))]
    special += [i for entry in languages for i in (*entry.source_ids, *entry.target_source_ids)]
    target = vocabularies.target
    return TokenRules(
        family=NAMED_PIECES,
        tokenizer_class=tokenizer,
        tokenizer_size=len(target),
        vocabulary_size=len(vocabularies.source),
        end_ids=(_id(source, end),) if ends_source(config, known) else (),
        pad_id=next((target.index(one) for one in _PADDING if one in target), len(target)),
        unk_id=_id(source, unknown),
        special_ids=tuple(sorted({i for i in special if i is not None})),
        duplicate_ids=duplicate_ids(target),
        source_required=any(entry.source_ids for entry in languages),
        target_required=any(e.target_prefix_ids or e.target_source_ids for e in languages),
        max_source_tokens=header.rows("encoder/position_encodings/encodings"),
        max_target_tokens=header.rows("decoder/position_encodings/encodings"),
        languages=languages,
        other_scripts=names_of_other_scripts(languages, known.tags),
        source_last=starts,
        prefix_starts=starts,
    )


def ends_source(config: Mapping[str, object], known: Languages) -> bool:
    """Tell whether a client ends a source with the end token.

    CTranslate2 may add it by itself (`add_source_eos`); models of OpenNMT have none, which the
    token that starts their answers shows.
    """
    if config.get("add_source_eos"):
        return False
    return known.by_tokens or config.get("decoder_start_token", _START_OF_OPENNMT) != (
        _START_OF_OPENNMT
    )


_USUAL = {"unk_token": "<unk>", "eos_token": "</s>"}


def _marks(config: Mapping[str, object]) -> tuple[str, ...]:
    start = str(config.get("bos_token") or _START_OF_OPENNMT)
    return (start, *_PADDING)


def _id(ids: Mapping[str, int], token: str) -> int:
    if token not in ids:
        raise UnsupportedModelError(f"the model's source vocabulary has no token {token!r}")
    return ids[token]
