# SPDX-License-Identifier: Apache-2.0
"""The vocabulary shortlist: the tokens that a deployment's target languages need.

Several languages have a list each, in the backend's own file (shortlists.json). The list of one
language, or a union, is written as the line of CTranslate2's vmap.txt that applies to every source,
so that all calls have the same candidates and answers do not depend on the other rows of a call. A
row in a language without a list uses the whole vocabulary.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import SettingError, UnknownLanguageError
from ct2_triton.prepare.shortlist_text import CountedText, belongs, count_text, script_of, spells
from ct2_triton.prepare.triton_config import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ct2_triton.client.pieces import Pieces
    from ct2_triton.prepare.families import ExpectedVocabulary, Family
    from ct2_triton.prepare.new_model import NewModel
    from ct2_triton.prepared_model import Language, TokenRules

_UNWRITABLE = (" ", "\t", "\n", "\r")  # separators of tokens, keys and lines in the file
# Roughly, at least the share of lines that are not covered changes: benchmarks/README.md.
_POOR_COVERAGE = 0.99
_EACH_PARAMETERS = (
    Parameter(
        "use_vmap",
        "true",
        "Translations consist of the tokens that shortlists.json lists for their language "
        "(--shortlist-from); a request may set it to false.",
    ),
)


@dataclass(frozen=True)
class LanguageList:
    """The list of one language.

    Attributes:
        language: The language.
        ids: IDs of the tokens, in order.
        tokens: The tokens.
    """

    language: Language
    ids: tuple[int, ...]
    tokens: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of shortlists.json."""
        prefix, source = self.language.target_prefix_ids, self.language.target_source_ids
        named = {"prefix_id": prefix[0]} if prefix else {"source_id": source[0]}
        return {"language": self.language.code, **named, "tokens": self.ids}


@dataclass(frozen=True)
class Shortlist:
    """A shortlist with its records.

    Attributes:
        tokens: Tokens of all lists, in the order of their IDs.
        languages: Its languages; empty if the model does not name its own.
        record: Entry for the prepared model's manifest.
        parameters: Parameters for its configuration.
        lists: The list of each language; empty if one list is for all.
    """

    tokens: tuple[str, ...]
    languages: tuple[Language, ...]
    record: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    lists: tuple[LanguageList, ...] = ()

    def write(self, model: Path) -> None:
        """Write shortlists.json or vmap.txt into a folder of CTranslate2 files."""
        if self.lists:
            write_lists([own.to_dict() for own in self.lists], model)
        else:
            write_map(self.tokens, model)

    def each(self) -> Iterator[Shortlist]:
        """Yield the list of each language as if it were the only one."""
        for own in self.lists:
            yield replace(self, tokens=own.tokens, languages=(own.language,), lists=())

    def check_search(self, parameters: Iterable[Parameter]) -> None:
        """Refuse early what the backend would refuse at load."""
        values = {entry.name: entry.value for entry in parameters}

        def is_on(name: str) -> bool:
            return values.get(name, "").lower() in ("true", "1")

        if not is_on("use_vmap"):
            return
        size = min([len(own.tokens) for own in self.lists] or [len(self.tokens)])
        needed = {"beam_size": 2, "sampling_topk": 1}
        if is_on("return_alternatives"):
            needed["num_hypotheses"] = 2
        for name, per_value in needed.items():
            value = values.get(name, "1")
            if value.isdigit() and value != "1" and int(value) * per_value > size:
                raise SettingError(
                    f"the shortlist has {size} tokens, and {name} {value} needs "
                    f"{int(value) * per_value}; give a longer text, a larger --shortlist-size or "
                    f"a lower {name}"
                )


@dataclass(frozen=True)
class _Entry:
    """One entry of --shortlist-from, with its language."""

    language: Language | None
    script: str | None
    text: Path | None

    @property
    def code(self) -> str | None:
        return self.language.code if self.language else None


def build_shortlist(
    new: NewModel, rules: TokenRules, family: Family, expected: ExpectedVocabulary
) -> Shortlist | None:
    """Build a list for each language that is named, or one for all; None if none is wanted."""
    options = new.options.shortlist
    if options is None:
        return None
    vocabulary, special = expected.target, _special_ids(rules, expected)
    entries = _read_entries(options.entries, rules, family)
    pieces = read_pieces(new.tokenizer, rules, of_targets=True)
    texts = [
        count_text(entry.text, pieces, entry.script, entry.code or "the model")
        if entry.text
        else None
        for entry in entries
    ]
    writable = _writable(vocabulary)
    kept = writable & _kept_always(special, rules, vocabulary, pieces)
    own = writable & pieces.text_ids - kept - _named_ids(entries) - special
    sources = list(zip(entries, texts, strict=True))
    chosen = [_chosen(entry, text, own, vocabulary, options.size) for entry, text in sources]
    lists = [
        kept | (writable & _named_ids([entry])) | set(pieces_of)
        for entry, pieces_of in zip(entries, chosen, strict=True)
    ]
    ids = set().union(*lists)
    is_each = len(entries) > 1 and not options.union
    languages = [
        _language_record(entry, text, len(own_ids), listed if is_each else ids)
        | ({"list_tokens": len(listed)} if is_each else {})
        for (entry, text), own_ids, listed in zip(sources, chosen, lists, strict=True)
    ]
    record = {
        "lists": "each language" if is_each else "one for all",
        "tokens": len(ids),
        "share_of_vocabulary": len(ids) / len(vocabulary),
        "kept_always": len(kept | (writable & _named_ids(entries))),
        "size_limit": options.size,
        "licence": options.licence or "not stated",
        "languages": languages,
    }
    for line in _summary(record, len(vocabulary)):
        new.report(line)
    named = tuple(entry.language for entry in entries if entry.language)
    tokens = _tokens(ids, vocabulary)
    if not is_each:
        return Shortlist(tokens, named, record, _parameters(named, rules))
    each = tuple(
        LanguageList(language, tuple(sorted(listed)), _tokens(listed, vocabulary))
        for language, listed in zip(named, lists, strict=True)
    )
    return Shortlist(tokens, named, record, _EACH_PARAMETERS, each)


def _tokens(ids: Iterable[int], vocabulary: Sequence[str]) -> tuple[str, ...]:
    return tuple(vocabulary[i] for i in sorted(ids))


def _read_entries(entries: Sequence[str], rules: TokenRules, family: Family) -> list[_Entry]:
    found = [_read_entry(entry.strip(), rules, family) for entry in entries]
    codes = [entry.code for entry in found]
    for code in codes:
        if codes.count(code) > 1:
            raise SettingError(
                f"--shortlist-from names {code or 'the target language'} twice; put its texts into "
                "one file"
            )
    return found


def _read_entry(entry: str, rules: TokenRules, family: Family) -> _Entry:
    targets = [language for language in rules.languages if language.target]
    name, equals, file = entry.partition("=")
    if not name or (equals and not file):
        raise SettingError(f"--shortlist-from: {entry!r} is neither a language nor language=file")
    if any(len(language.target_source_ids) > 1 for language in targets):
        raise SettingError(
            "--shortlist-from: the source text of this model names the target language in words, "
            "which the backend cannot tell from other text, so it has no shortlist"
        )
    if not equals and len(targets) <= 1 and (not targets or Path(name).is_file()):
        language, file = (targets[0] if targets else None), name
    else:
        try:
            language = rules.target_language(name)
        except UnknownLanguageError as error:
            hint = _hint(name, one_target=len(targets) == 1)
            raise SettingError(f"--shortlist-from: {error}{hint}") from error
    script = script_of(language, family) if language else None
    if not file and script is None:
        raise SettingError(
            f"--shortlist-from: the script of {name} is not known; give a text, {name}=file"
        )
    return _Entry(language, script, Path(file) if file else None)


def _hint(name: str, *, one_target: bool) -> str:
    if Path(name).is_file():
        return f" (for a text, name its language: LANGUAGE={name})"
    return " (and there is no file of that name)" if one_target else ""


def _writable(vocabulary: Sequence[str]) -> set[int]:
    """Return the IDs that vmap.txt can name: the first ID of each string without separators."""
    first: dict[str, int] = {}
    for token_id, token in enumerate(vocabulary):
        if token and not any(space in token for space in _UNWRITABLE):
            first.setdefault(token, token_id)
    return set(first.values())


def _special_ids(rules: TokenRules, expected: ExpectedVocabulary) -> set[int]:
    """Return the IDs of special tokens in an answer; those of the rules are in a source."""
    special = {*rules.special_ids, *rules.end_ids, rules.unk_id}
    if expected.answers is None:
        return {i for i in {*special, rules.pad_id} if i < len(expected.tokens)}
    names = {expected.tokens[i] for i in special if i < len(expected.tokens)}
    return {i for i, token in enumerate(expected.answers) if token in names}


def _kept_always(
    special: set[int], rules: TokenRules, vocabulary: Sequence[str], pieces: Pieces
) -> set[int]:
    """Return special tokens, and single characters, bytes, digits, punctuation and symbols."""
    languages = {
        token_id
        for entry in rules.languages
        for token_id in (
            *entry.source_ids,
            *entry.target_source_ids,
            *entry.target_prefix_ids,
        )
    }
    return (special - languages) | {
        i
        for i in pieces.text_ids - special
        if i < len(vocabulary) and (spells(vocabulary[i]) or belongs(vocabulary[i], None))
    }


def _named_ids(entries: Iterable[_Entry]) -> set[int]:
    """Return the IDs of the target prefixes of the named languages."""
    return {i for entry in entries if entry.language for i in entry.language.target_prefix_ids}


def _chosen(
    entry: _Entry,
    text: CountedText | None,
    own: set[int],
    vocabulary: Sequence[str],
    size: int | None,
) -> list[int]:
    """Return pieces: those of the text, most frequent first, then those of the script.

    Tokenizers number pieces roughly by frequency. Pieces of the script are added only up to a given
    size.
    """
    found: list[int] = []
    if text:
        ranked = sorted(text.counts.items(), key=lambda item: (-item[1], item[0]))
        found = [token_id for token_id, _ in ranked if token_id in own]
    if entry.script and (not text or size is not None):
        rest = sorted(own.difference(found))
        found += [i for i in rest if belongs(vocabulary[i], entry.script)]
    return found[:size]


def _language_record(
    entry: _Entry, text: CountedText | None, tokens: int, ids: set[int]
) -> dict[str, Any]:
    """Return the record of one entry; `tokens` excludes those that are always kept."""
    record: dict[str, Any] = {
        "code": entry.code,
        "script": entry.script,
        "tokens": tokens,
        "text": None,
    }
    if text:
        record["text"] = {
            "file": text.path.name,
            "sha256": text.sha256,
            "lines": text.lines,
            "lines_counted": text.counted,
            "lines_held_out": len(text.held_out),
            "held_out_coverage": asdict(text.coverage(ids)),
        }
    return record


def _summary(record: Mapping[str, Any], vocabulary: int) -> Iterable[str]:
    is_each = record["lists"] == "each language"
    of = f"s of {len(record['languages'])} languages, together" if is_each else ""
    yield (
        f"shortlist{of}: {record['tokens']} of {vocabulary} tokens "
        f"({record['share_of_vocabulary']:.1%}), {record['kept_always']} of them kept always, "
        f"licence of the texts {record['licence']}"
    )
    size = record["size_limit"]
    for entry in record["languages"]:
        name = entry["code"] or "texts"
        if "list_tokens" in entry:
            name += f", {entry['list_tokens']} tokens"
        if (text := entry["text"]) is None:
            cut = size is not None and entry["tokens"] == size
            pieces = f"the first {size} pieces" if cut else "every piece"
            yield f"shortlist, {name}: {pieces} of the script {entry['script']}"
            continue
        coverage = text["held_out_coverage"]
        hint = "; a longer text or a larger --shortlist-size covers more"
        yield (
            f"shortlist, {name}: {text['lines_counted']} lines of {text['file']} counted, of "
            f"{text['lines_held_out']} others {coverage['tokens']:.2%} of the tokens and "
            f"{coverage['sentences']:.2%} of the lines covered"
            f"{hint if coverage['sentences'] < _POOR_COVERAGE else ''}"
        )


def _parameters(named: Sequence[Language], rules: TokenRules) -> tuple[Parameter, ...]:
    found = [
        Parameter(
            "use_vmap",
            "true",
            "Translations consist of the tokens in vmap.txt (--shortlist-from); a request may set "
            "it to false.",
        )
    ]
    reason = "Languages of the shortlist; rows in other languages use the whole vocabulary."
    for name, kind in (("vmap_prefix_ids", "prefix"), ("vmap_source_ids", "source")):
        ids = [getattr(entry, f"target_{kind}_ids") for entry in rules.languages if entry.target]
        if any(ids):
            allowed = [i for entry in named for i in getattr(entry, f"target_{kind}_ids")]
            found.append(Parameter(name, json.dumps(allowed), reason))
    return tuple(found)


MAP_NAME = "vmap.txt"
LISTS_NAME = "shortlists.json"


def write_map(tokens: Iterable[str], model: Path) -> None:
    """Write CTranslate2's vmap.txt with the same candidates for every source."""
    (model / MAP_NAME).write_text("\t" + " ".join(tokens) + "\n", encoding="utf-8")


def write_lists(lists: Sequence[dict[str, Any]], model: Path) -> None:
    """Write the backend's shortlists.json.

    Each list has `language`, `prefix_id` or `source_id`, and `tokens` (IDs).
    """
    (model / LISTS_NAME).write_text(json.dumps({"lists": lists}) + "\n", encoding="utf-8")


def read_lists(model: Path) -> dict[str, list[int]]:
    """Read the IDs of each list of shortlists.json by language; empty without the file."""
    file = model / LISTS_NAME
    if not file.is_file():
        return {}
    lists = json.loads(file.read_text(encoding="utf-8"))["lists"]
    return {entry["language"]: entry["tokens"] for entry in lists}


def link_with_map(tokens: Iterable[str], model: Path, folder: Path) -> Path:
    """Fill an empty folder with links to a model's files, and a vmap.txt of these tokens."""
    for file in model.iterdir():
        if file.name not in (LISTS_NAME, MAP_NAME):
            (folder / file.name).symlink_to(file.resolve())
    write_map(tokens, folder)
    return folder
