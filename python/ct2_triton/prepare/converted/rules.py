# SPDX-License-Identifier: Apache-2.0
"""The token rules and languages of a converted model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ct2_triton.errors import SettingError, UnsupportedModelError
from ct2_triton.prepare.checkpoint import METADATA_FILE
from ct2_triton.prepare.families.marian import Marian
from ct2_triton.prepare.families.prefixed import M2M100, NLLB, MBart50
from ct2_triton.prepare.families.t5 import T5
from ct2_triton.prepare.languages import names_of_other_scripts, with_aliases
from ct2_triton.prepare.rules import duplicate_ids
from ct2_triton.prepared_model import NAMED_PIECES, Language, TokenRules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ct2_triton.prepare.converted.files import ModelHeader, Vocabularies

_PADDING = ("<pad>", "<blank>")
# Start tokens of OpenNMT-py and OpenNMT-tf models, whose sources have no end token.
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
    """Return whether a client appends the end token to a source.

    CTranslate2 may add it itself (`add_source_eos`). OpenNMT models, known by their decoder start
    token, have none.
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


TOKENIZER_CONFIG_FILE = "tokenizer_config.json"

# Argos's own codes that are not language codes.
_ARGOS_TAGS = {"pb": "pt-BR", "zt": "zh-Hant"}


@dataclass(frozen=True)
class Languages:
    """The languages of a model.

    Attributes:
        entries: The languages, without aliases.
        tags: BCP 47 tag of each code that denotes a language.
        origin: Where they were found, for the record.
        by_tokens: Whether tokens of the vocabulary name them, as in transformers models.
    """

    entries: tuple[Language, ...]
    tags: Mapping[str, str]
    origin: str
    by_tokens: bool = False


@dataclass(frozen=True)
class _Style:
    """How a family writes the tokens of its languages.

    Attributes:
        token: Pattern of the token; its group is the language's code.
        tag: Returns the BCP 47 tag of a code.
        in_source: Whether the target's token is put into the source, not before the answer.
        sources: Whether they are source languages too.
        at_least: Number of tokens from which the style is recognized.
    """

    token: re.Pattern[str]
    tag: Callable[[str], str | None]
    in_source: bool
    sources: bool
    at_least: int


# The first style with enough tokens is used, because ordinary pieces may match, too.
_STYLES = (
    _Style(re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"), NLLB().language_tag, False, True, 2),
    _Style(re.compile(r"__([a-z]{2,3})__"), M2M100().language_tag, False, True, 2),
    _Style(re.compile(r"([a-z]{2}_[A-Z]{2})"), MBart50().language_tag, False, True, 2),
    _Style(re.compile(r">>(.+)<<"), Marian().language_tag, True, False, 1),
    _Style(re.compile(r"<2([A-Za-z_]+)>"), T5().language_tag, True, True, 1),
)


def find_languages(folder: Path, vocabularies: Vocabularies, pair: str | None) -> Languages:
    """Find the languages of a model, which may have the metadata of an Argos package.

    There are none if nothing names them. `pair` is a pair such as `en:de` for a model without
    names.
    """
    known: Languages | None
    if (folder / METADATA_FILE).is_file():
        known = _of_package(folder / METADATA_FILE, vocabularies)
    else:
        known = next(filter(None, (_of_style(one, vocabularies) for one in _STYLES)), None)
        known = known or _of_tokenizer(folder / TOKENIZER_CONFIG_FILE)
    if pair is None:
        return known or Languages((), {}, "nothing")
    if known:
        codes = ", ".join(entry.code for entry in known.entries[:5])
        raise SettingError(f"--language-pair {pair}: the model itself names its languages: {codes}")
    source, _, target = pair.partition(":")
    if not source or not target or source == target:
        raise SettingError(f"--language-pair {pair} is not of the form en:de")
    return _pair(source, target, (), "--language-pair")


def _of_style(style: _Style, vocabularies: Vocabularies) -> Languages | None:
    targets = {token: i for i, token in reversed(list(enumerate(vocabularies.target)))}
    found = []
    seen = set()
    for i, token in enumerate(vocabularies.source):
        match = style.token.fullmatch(token)
        if not match or match[1] in seen:
            continue
        seen.add(match[1])
        if style.in_source:
            found.append(Language(match[1], source=style.sources, target_source_ids=(i,)))
        elif token in targets:
            prefix = (targets[token],)
            found.append(Language(match[1], source_ids=(i,), target_prefix_ids=prefix))
    if len(found) < style.at_least:
        return None
    tags = {entry.code: tag for entry in found if (tag := style.tag(entry.code))}
    return Languages(tuple(found), tags, "the tokens of the vocabulary", by_tokens=True)


def _of_package(file: Path, vocabularies: Vocabularies) -> Languages:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        source, target = str(content["from_code"]), str(content["to_code"])
        prefix = str(content.get("target_prefix") or "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedModelError(
            f"{METADATA_FILE} names no pair of languages (from_code, to_code): {error!r}"
        ) from error
    if prefix and prefix not in vocabularies.target:
        raise UnsupportedModelError(
            f"{METADATA_FILE} asks for the target prefix {prefix!r}, which the model does not have"
        )
    ids = (vocabularies.target.index(prefix),) if prefix else ()
    return _pair(source, target, ids, METADATA_FILE)


def _of_tokenizer(file: Path) -> Languages | None:
    """Read the language pair of an OPUS-MT model; groups, such as `mul`, are not languages."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        source, target = content["source_lang"], content["target_lang"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(source, str) or not isinstance(target, str) or source == target:
        return None
    return _pair(source, target, (), TOKENIZER_CONFIG_FILE)


def _pair(source: str, target: str, prefix: tuple[int, ...], origin: str) -> Languages:
    entries = (
        Language(source, target=False),
        Language(target, source=False, target_prefix_ids=prefix),
    )
    tags = {code: _ARGOS_TAGS.get(code) or Marian().language_tag(code) for code in (source, target)}
    return Languages(entries, {code: tag for code, tag in tags.items() if tag}, origin)
