# SPDX-License-Identifier: Apache-2.0
"""Build the token rules of a model for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.prepare.families.base import refuse_added
from ct2_triton.prepare.languages import names_of_other_scripts, with_aliases
from ct2_triton.prepare.tokenizers import beside_added_tokens
from ct2_triton.prepared_model import NAMED_PIECES, TokenRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint
    from ct2_triton.prepare.families import ExpectedVocabulary, Family


def build_rules(
    family: Family,
    checkpoint: Checkpoint,
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: ExpectedVocabulary,
) -> TokenRules:
    """Build the rules of one model."""
    found = family.languages(tokenizer, checkpoint.config)
    named = {entry.code: family.language_tag(entry.code) for entry in found}
    tags = {code: tag for code, tag in named.items() if tag}
    languages = with_aliases(found, tags)
    limit = family.position_limit(checkpoint.config)
    added = family.added_tokens(tokenizer, languages)
    refuse_added(
        [token for token in added if token.id >= len(vocabulary.tokens)],
        f"the model has {len(vocabulary.tokens)} rows and none for them; call "
        "model.resize_token_embeddings(len(tokenizer)) and train it, or save the tokenizer that "
        "it was trained with",
    )
    answers = vocabulary.answers  # the two sides have different IDs, as in a converted model
    return TokenRules(
        family=family.name if answers is None else NAMED_PIECES,
        tokenizer_class=type(tokenizer).__name__,
        tokenizer_size=len(tokenizer) if answers is None else len(answers),
        vocabulary_size=len(vocabulary.tokens),
        end_ids=(_id(tokenizer.eos_token_id),),
        pad_id=_id(tokenizer.pad_token_id) if answers is None else len(answers),
        unk_id=_id(tokenizer.unk_token_id),
        special_ids=family.special_ids(tokenizer, languages),
        duplicate_ids=duplicate_ids(vocabulary.target),
        source_required=family.source_required(languages),
        target_required=family.target_required(languages),
        max_source_tokens=limit,
        max_target_tokens=limit,
        languages=languages,
        added_tokens=added,
        beside_added_tokens=beside_added_tokens(tokenizer) if added else "",
        other_scripts=names_of_other_scripts(languages, tags),
        source_last=family.source_last(tokenizer),
        prefix_starts=family.prefix_starts(),
    )


def duplicate_ids(tokens: tuple[str, ...]) -> Mapping[int, int]:
    """Return the first ID of a repeated token for each later ID."""
    first: dict[str, int] = {}
    later = {}
    for token_id, token in enumerate(tokens):
        if first.setdefault(token, token_id) != token_id:
            later[token_id] = first[token]
    return later


def _id(token_id: int | list[int] | None) -> int:
    if not isinstance(token_id, int):
        raise TypeError(f"a special token has the id {token_id!r}")
    return token_id
