# SPDX-License-Identifier: Apache-2.0
"""Marian models of the OPUS-MT project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ct2_triton.prepare.families.base import (
    ExpectedVocabulary,
    Family,
    padded,
    refuse_added,
    tokens_by_id,
)
from ct2_triton.prepared_model import Language

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedTokenizerBase

    from ct2_triton.prepare.checkpoint import Checkpoint

_TARGET_TOKEN = re.compile(r">>(.+)<<")
# ISO 639-5: codes of language families and groups, which OPUS-MT uses besides language codes.
_GROUP = re.compile(
    "aav|afa|alg|alv|apa|aqa|aql|art|ath|auf|aus|awd|azc|bad|bai|bat|ber|bih|bnt|btk|cai|cau|"
    "cba|ccn|ccs|cdc|cdd|cel|cmc|cpe|cpf|cpp|crp|csu|cus|day|dmn|dra|egx|esx|euq|fiu|fox|gem|"
    "gme|gmq|gmw|grk|hmx|hok|hyx|iir|ijo|inc|ine|ira|iro|itc|jpx|kar|kdo|khi|kro|map|mkh|mno|"
    "mul|mun|myn|nah|nai|ngf|nic|nub|omq|omv|oto|paa|phi|plf|poz|pqe|pqw|pra|qwe|roa|sai|sal|"
    "sdv|sem|sgn|sio|sit|sla|smi|son|sqj|ssa|syd|tai|tbq|trk|tup|tut|tuw|urj|wak|wen|xgn|xnd|"
    "ypk|zhx|zle|zls|zlw|znd"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?")


class Marian(Family):
    """`pieces </s>`; for a model with several targets `>>fra<< pieces </s>`."""

    name = "marian"
    title = "Marian (OPUS-MT)"
    own_tokens = _TARGET_TOKEN

    def recognises(self, checkpoint: Checkpoint) -> bool:
        """Recognise the architecture."""
        return checkpoint.config.get("model_type") == "marian"

    def vocabulary(
        self, tokenizer: PreTrainedTokenizerBase, config: Mapping[str, Any]
    ) -> ExpectedVocabulary:
        """Drop a last `<pad>`, because Marian starts from a zero embedding, not from a token."""
        refuse_added(
            self.added_tokens(tokenizer),
            "CTranslate2's converter takes the last row of a Marian model for <pad>; add words to "
            "the SentencePiece models instead, or train without these tokens",
        )
        if getattr(tokenizer, "separate_vocabs", False):
            return _two_vocabularies(tokenizer)
        tokens = tokens_by_id(tokenizer)
        expected = padded(tokens, int(config["vocab_size"]), "<unused%d>", "rows without text")
        if expected.tokens[-1] != "<pad>":
            return expected
        note = f"removed: <pad> (id {len(tokens) - 1}), which must not be generated"
        return ExpectedVocabulary(expected.tokens[:-1], (*expected.differences, note))

    def languages(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: Mapping[str, Any],
    ) -> list[Language]:
        """Read targets from `>>xxx<<` tokens, other languages from the tokenizer's pair."""
        vocabulary = tokenizer.get_vocab()
        targets: dict[str, tuple[int, ...]] = {
            match[1]: (int(token_id),)
            for token, token_id in sorted(vocabulary.items(), key=lambda item: item[1])
            if (match := _TARGET_TOKEN.fullmatch(token))
        }
        source = _tag(getattr(tokenizer, "source_lang", None))
        if not targets and (code := _tag(getattr(tokenizer, "target_lang", None))):
            targets = {code: ()}
        same = {code for code in targets if source and _same_language(code, source)}
        found = [
            Language(code, source=code in same, target_source_ids=ids)
            for code, ids in targets.items()
        ]
        if source and not same:
            found.insert(0, Language(source, target=False))
        return found

    def language_tag(self, code: str) -> str | None:
        """Return the code with hyphens; groups of languages (`roa`, `ROMANCE`) have no tag."""
        return _tag(code)

    def reference_ids(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: Mapping[str, Any],
        text: str,
        source: Language | None,
        target: Language | None,
    ) -> list[int]:
        """Encode the target token and the text, as model cards say."""
        named = bool(target and target.target_source_ids)
        marked = f">>{target.code}<< {text}" if target and named else text
        return list(map(int, tokenizer(marked).input_ids))


def _two_vocabularies(tokenizer: Any) -> ExpectedVocabulary:  # noqa: ANN401 - of Marian alone
    """Read the tokens of both sides, each without its last `<pad>`."""
    sides = [sorted(ids, key=ids.get) for ids in (tokenizer.encoder, tokenizer.target_encoder)]
    notes = tuple(
        f"removed: <pad> (id {len(tokens) - 1} of the {side} vocabulary), which must not be "
        "generated"
        for side, tokens in zip(("source", "target"), sides, strict=True)
        if tokens[-1] == "<pad>"
    )
    source, target = (tuple(tokens[:-1] if tokens[-1] == "<pad>" else tokens) for tokens in sides)
    return ExpectedVocabulary(source, notes, target)


def _tag(code: str | None) -> str | None:
    """Return the BCP 47 tag of a code that denotes one language."""
    if not code or not _LANGUAGE.fullmatch(code):
        return None
    tag = code.replace("_", "-")
    return None if _GROUP.fullmatch(tag.split("-")[0]) else tag


def _same_language(one: str, other: str) -> bool:
    """Return whether two codes (`en`, `eng`) denote the same language."""
    import langcodes

    tags = [_tag(code) for code in (one, other)]
    return None not in tags and len({langcodes.standardize_tag(str(tag)) for tag in tags}) == 1
