# SPDX-License-Identifier: Apache-2.0
"""Read prepared models; shared by preparation, client and server start.

A prepared model is one folder of a Triton model repository:

    <name>/config.pbtxt          the model's Triton configuration
    <name>/ct2_model.json        where it comes from and how it was made (`PreparedModel`)
    <name>/tokenizer/            all a client needs, also when copied elsewhere alone
        languages.json           how ids are put together, and the languages (`TokenRules`)
        ...                      the tokenizer files of the source, unchanged
    <name>/1/model/              the CTranslate2 model
"""

from __future__ import annotations

import difflib
import json
import os
import re
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.errors import PreparedModelError, UnknownLanguageError, VersionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tritonclient.grpc.model_config_pb2 import ModelConfig

REPOSITORY_VARIABLE = "CT2_MODEL_REPOSITORY"
REPOSITORY_NAME = "model_repository"
DEFAULT_TEXT = f"default: ./{REPOSITORY_NAME}"  # for --help


def default_repository() -> Path:
    """Return CT2_MODEL_REPOSITORY, else `./model_repository`; it may be missing."""
    return Path(os.environ.get(REPOSITORY_VARIABLE) or REPOSITORY_NAME)


FORMAT = 1
MANIFEST_NAME = "ct2_model.json"
CONFIG_NAME = "config.pbtxt"
TOKENIZER_NAME = "tokenizer"
WEIGHTS_NAME = "model.bin"
LANGUAGES_NAME = "languages.json"

_FEW_LANGUAGES = 24  # up to this number, a message names all
_SHOWN_LANGUAGES = 5
_BY_SCRIPT = ("zh-Hans", "zh-Hant")

TEXT_SUFFIX = "-text"
"""Suffix of a text model's name, after the name of the token-ID model whose files it shares."""

STREAM_SUFFIX = "-stream"
"""Suffix of a stream model's name."""

NAMED_PIECES = "pieces"
"""Family name of a model whose pieces are looked up by name in its own vocabularies."""

# Fields of `TokenRules` that folders prepared by an earlier version lack.
_LATER_NAMES = {
    "added_tokens",
    "beside_added_tokens",
    "other_scripts",
    "placeholders",
    "prefix_starts",
    "source_last",
}


@dataclass(frozen=True)
class Language:
    """One language (or, for T5, one half of a task) and the IDs that select it.

    Attributes:
        code: The model's own code: `deu_Latn` (NLLB), `de` (M2M100), `de_DE` (mBART-50), `deu`
            (OPUS-MT), `de` (T5, MADLAD).
        aliases: Other names of this language, each unique in the model: ISO 639-1, ISO 639-3, BCP
            47 (`zh-Hans`), FLORES-200.
        name: Its name in English, for people; "" if prepared by an earlier version.
        source: Whether text in this language can be translated.
        target: Whether text can be translated into it.
        source_ids: First part of INPUT_IDS for a text in this language.
        target_source_ids: Next part of INPUT_IDS for a translation into this language, in families
            that name the target in the source (OPUS-MT `>>fra<<`, MADLAD `<2fr>`, T5).
        target_prefix_ids: TARGET_PREFIX when translating into this language; OUTPUT_IDS starts
            with them.
    """

    code: str
    aliases: tuple[str, ...] = ()
    name: str = ""
    source: bool = True
    target: bool = True
    source_ids: tuple[int, ...] = ()
    target_source_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()

    @property
    def tag(self) -> str:
        """Its usual BCP 47 tag: two letters, or with the script for Chinese, else the shortest."""
        names = (name for name in self.aliases if name[:1].islower())  # without English names
        tags = sorted({name.replace("_", "-") for name in (self.code, *names)})
        by_script = [tag for tag in tags if tag in _BY_SCRIPT]
        short = [tag for tag in tags if len(tag) == 2]
        return [*by_script, *short, *sorted(tags, key=len)][0]


@dataclass(frozen=True)
class AddedToken:
    """A token that was added to the tokenizer of a family (`tokenizer.add_tokens`).

    Its content is this single token anywhere in a text, as in `tokenizer.json`.

    Attributes:
        content: Its text.
        id: Its ID.
        special: Whether decoded text omits it, as in transformers.
        lstrip: Whether it includes the white space before it.
        rstrip: Whether it includes the white space after it.
        single_word: Whether it is not a token within a word.
        normalized: Whether it is searched in the text as SentencePiece normalizes it.
    """

    content: str
    id: int
    special: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class TokenRules:
    """How text becomes INPUT_IDS and TARGET_PREFIX, and OUTPUT_IDS become text.

    The tokenizer of the same folder gives the pieces of the text alone, without special tokens:
    `ct2_triton.client.pieces`, or `AutoTokenizer` with `encode(text, add_special_tokens=False,
    split_special_tokens=True)`. They do not depend on the languages, so one call per sentence
    suffices, and the tokenizer's state does not change. Then

        INPUT_IDS     = source.source_ids + target.target_source_ids + pieces + end_ids
                        (target.target_source_ids + pieces + end_ids + source.source_ids where
                        `source_last` is true)
        TARGET_PREFIX = target.target_prefix_ids          (`[]` where the model takes none)
        pieces out    = OUTPUT_IDS without its first len(TARGET_PREFIX) ids
                        (one less where `prefix_starts` is true)

    and the pieces out, decoded without special tokens, are the translation. `input_ids`,
    `target_prefix` and `without_prefix` do this. An empty text is not sent, because models invent
    words for its row `[language, </s>]`.

    Attributes:
        family: `nllb`, `m2m100`, `mbart50`, `mbart25`, `marian` or `t5`; `pieces` for a model that
            was converted already, whose two sides may have a vocabulary each.
        tokenizer_class: Class of the source's tokenizer, for information.
        tokenizer_size: IDs of an answer from this one on have no text (padding rows of the
            embedding table).
        vocabulary_size: IDs of a source are 0 .. vocabulary_size - 1.
        end_ids: Last part of INPUT_IDS: `</s>`.
        pad_id: Padding of rows in requests and answers; may be outside the vocabulary (OPUS-MT).
        unk_id: The tokenizer's ID for unknown characters.
        special_ids: Ids that carry no text: a row of only these has no translation.
        duplicate_ids: Later ID -> first ID of the same token. CTranslate2 looks tokens up by
            string, so answers contain only the first.
        source_required: A source language must be named.
        target_required: A target language must be named.
        max_source_tokens: Longest INPUT_IDS the model has positions for; None: no limit.
        max_target_tokens: Longest OUTPUT_IDS the model has positions for; None: no limit.
        languages: Every language, in the order of the source's tokenizer; may be empty (T5 without
            known tasks: the task is part of the text).
        added_tokens: Tokens that texts may contain besides the tokenizer's pieces.
        beside_added_tokens: How the text between two of them is split. `always`: its first piece
            begins with a space. `first`: only at the start of a text. `words`: like `always`, and
            spaces next to a token are dropped. Empty: as in `tokenizer.json`, which C++ does not
            read.
        other_scripts: Script by name, for names whose region implies a script that the model lacks
            (`zh-TW` for a model with only Simplified Chinese); they are refused.
        source_last: `source_ids` go after `end_ids` (NLLB with `legacy_behaviour`, mBART-25).
        prefix_starts: The first id of TARGET_PREFIX starts the decoder, and is not part of the
            answer (mBART-25).
        placeholders: Placeholders that the model copies (docs/terms.md), best first: texts with
            `{}` for a number, and lists of names; None if that was not tried.
    """

    family: str
    tokenizer_class: str
    tokenizer_size: int
    vocabulary_size: int
    end_ids: tuple[int, ...]
    pad_id: int
    unk_id: int
    special_ids: tuple[int, ...]
    duplicate_ids: Mapping[int, int] = field(default_factory=dict)
    source_required: bool = False
    target_required: bool = False
    max_source_tokens: int | None = None
    max_target_tokens: int | None = None
    languages: tuple[Language, ...] = ()
    added_tokens: tuple[AddedToken, ...] = ()
    beside_added_tokens: str = ""
    other_scripts: Mapping[str, str] = field(default_factory=dict)
    source_last: bool = False
    prefix_starts: bool = False
    placeholders: tuple[str | tuple[str, ...], ...] | None = None

    @classmethod
    def read(cls, tokenizer_folder: Path) -> TokenRules:
        """Read `languages.json` of a prepared model's `tokenizer/` folder."""
        content = read_json(tokenizer_folder / LANGUAGES_NAME)
        try:
            later = {name: content[name] for name in _LATER_NAMES if name in content}
            rules = {name: content[name] for name in _names(cls) - _LATER_NAMES} | later
            rules["duplicate_ids"] = {int(k): v for k, v in rules["duplicate_ids"].items()}
            rules["languages"] = [_language(entry) for entry in rules["languages"]]
            rules["added_tokens"] = [AddedToken(**entry) for entry in rules.get("added_tokens", ())]
            if rules.get("placeholders") is not None:
                rules["placeholders"] = tuple(map(_kind, rules["placeholders"]))
            lists = ("end_ids", "special_ids", "languages", "added_tokens")
            return cls(**_with_tuples(rules, lists))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PreparedModelError(
                f"{tokenizer_folder / LANGUAGES_NAME} is damaged ({error!r}); "
                "prepare the model again with ct2-prepare"
            ) from error

    def write(self, tokenizer_folder: Path) -> None:
        """Write `languages.json`."""
        write_json(tokenizer_folder / LANGUAGES_NAME, self.content())

    def content(self) -> dict[str, Any]:
        """Return the content of `languages.json`."""
        return {"format": FORMAT, **asdict(self)}

    def source_language(self, name: str | None) -> Language | None:
        """Find the language of a text by code or alias, ignoring case and treating `-` as `_`.

        A region that the model does not distinguish is ignored: `en-US` is `en`. None selects the
        model's only language, or none if none is needed. A model that does not distinguish its
        source languages (OPUS-MT from a group of languages) lists none: then any name is accepted,
        and None is returned.
        """
        if not any(entry.source for entry in self.languages):
            return None
        return self._find(name, "source", self.source_required)

    def target_language(self, name: str | None) -> Language | None:
        """Find the language to translate into; like `source_language`."""
        return self._find(name, "target", self.target_required)

    def input_ids(
        self, pieces: Sequence[int], source: Language | None, target: Language | None
    ) -> list[int]:
        """Compose one row of INPUT_IDS from the IDs of a text without special tokens."""
        first = source.source_ids if source else ()
        then = target.target_source_ids if target else ()
        rest = [*then, *pieces, *self.end_ids]
        return [*rest, *first] if self.source_last else [*first, *rest]

    def target_prefix(self, target: Language | None) -> list[int]:
        """Return one row of TARGET_PREFIX; empty if the model takes none."""
        return list(target.target_prefix_ids) if target else []

    def prefix_length(self, target: Language | None) -> int:
        """Return the number of prefix IDs at the start of OUTPUT_IDS for a target."""
        length = len(self.target_prefix(target))
        return length - 1 if self.prefix_starts and length else length

    def without_prefix(self, output_ids: Sequence[int], target: Language | None) -> list[int]:
        """Remove the prefix and IDs without text from a row of OUTPUT_IDS."""
        rest = output_ids[self.prefix_length(target) :]
        return [token for token in rest if token < self.tokenizer_size]

    def _find(self, name: str | None, side: str, required: bool) -> Language | None:
        if name is None:
            only = [entry for entry in self.languages if getattr(entry, side)]
            if len(only) == 1:
                return only[0]
            if required:
                raise UnknownLanguageError(
                    f"this model needs a {side} language; {self._known(side)}"
                )
            return None
        language = self._by_name.get(_fold(name))
        if language is None and (script := self._script_by_name.get(_fold(name))):
            raise UnknownLanguageError(
                f"{name!r} is written in the script {script}, which the model does not have; "
                f"{self._nearest(name, side)}"
            )
        language = language or self._by_name.get(_without_region(name))
        if language is None or not getattr(language, side):
            raise UnknownLanguageError(
                f"the model has no {side} language {name!r}; {self._nearest(name, side)}"
            )
        return language

    @cached_property
    def _by_name(self) -> dict[str, Language]:
        aliases = {_fold(name): entry for entry in self.languages for name in entry.aliases}
        return {**aliases, **{_fold(entry.code): entry for entry in self.languages}}

    @cached_property
    def _script_by_name(self) -> dict[str, str]:
        return {_fold(name): script for name, script in self.other_scripts.items()}

    def _nearest(self, name: str, side: str) -> str:
        known = {key: entry for key, entry in self._by_name.items() if getattr(entry, side)}
        keys = difflib.get_close_matches(_fold(name), known, n=5, cutoff=0.6)
        if (language := _fold(name).split("-")[0]) in known:
            keys.insert(0, language)
        codes = list(dict.fromkeys(known[key].code for key in keys))
        return f"nearest: {', '.join(codes[:3])}" if codes else self._known(side)

    def _known(self, side: str) -> str:
        """Return the names of all languages if they are few, else of some."""
        codes = [entry.code for entry in self.languages if getattr(entry, side)]
        if len(codes) <= _FEW_LANGUAGES:
            return f"it has {', '.join(codes) or 'none'}"
        return f"it has {len(codes)}, such as {', '.join(codes[:_SHOWN_LANGUAGES])}"


@dataclass(frozen=True)
class ModelSource:
    """The origin of a model.

    Attributes:
        id: Hub id, or the path given when it was a local directory or archive.
        revision: The requested branch, tag or commit; None for a local directory.
        commit: The resolved commit; None if unknown.
        license: Licence named by the model card; None if it names none.
        path: Absolute path of a local directory or archive, without links; None for others, and in
            records of earlier versions.
    """

    id: str
    revision: str | None = None
    commit: str | None = None
    license: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class PreparedModel:
    """One prepared model on disk, and its `ct2_model.json`.

    Attributes:
        directory: The model's folder.
        name: Its name in Triton.
        source: Its origin.
        rules: The token rules (`tokenizer/languages.json`).
        manifest: The whole `ct2_model.json`: `format`, `name`, `source`, `family`, `conversion`
            (options), `versions`, `generation` (the converted generation config), `verification`
            (the results of the proof), `files` (sha256 by path), and `shortlist` (size, coverage,
            texts) if it has a vocabulary shortlist.
    """

    directory: Path
    name: str
    source: ModelSource
    rules: TokenRules
    manifest: Mapping[str, Any]

    @classmethod
    def read(cls, directory: Path) -> PreparedModel:
        """Read a prepared model."""
        manifest = read_json(directory / MANIFEST_NAME)
        try:
            of_record = {"path": None, **manifest["source"]}
            source = ModelSource(**{name: of_record[name] for name in _names(ModelSource)})
            name = str(manifest["name"])
        except (KeyError, TypeError) as error:
            raise PreparedModelError(
                f"{directory / MANIFEST_NAME} is damaged ({error!r}); "
                "prepare the model again with ct2-prepare"
            ) from error
        rules = TokenRules.read(directory / TOKENIZER_NAME)
        return cls(directory, name, source, rules, manifest)

    @property
    def tokenizer_folder(self) -> Path:
        """Folder of the tokenizer files and `languages.json`."""
        return self.directory / TOKENIZER_NAME

    @property
    def config_file(self) -> Path:
        """The Triton configuration."""
        return self.directory / CONFIG_NAME

    @property
    def model_folder(self) -> Path:
        """Folder of the CTranslate2 model."""
        return self.directory / "1" / "model"


def parse_config(text: str, path: Path) -> ModelConfig:
    """Parse a config.pbtxt; fields that only a newer Triton knows are ignored."""
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        return text_format.Parse(text, ModelConfig(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise VersionError(f"{path} is not a model configuration: {error}") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write readable JSON, UTF-8, with a newline at the end."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read one of our JSON files and check its format; raises PreparedModelError for damage."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PreparedModelError(
            f"{path} does not exist; name a folder that ct2-prepare wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise PreparedModelError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PreparedModelError(
            f"{path} is not of format {FORMAT}; prepare the model again with this version"
        )
    return content


def _names(dataclass_type: type) -> set[str]:
    return {entry.name for entry in fields(dataclass_type)}


def _language(entry: Mapping[str, Any]) -> Language:
    values = {name: entry[name] for name in _names(Language) - {"name"}}
    values["name"] = entry.get("name", "")
    lists = ("aliases", "source_ids", "target_source_ids", "target_prefix_ids")
    return Language(**_with_tuples(values, lists))


def _kind(entry: str | Sequence[str]) -> str | tuple[str, ...]:
    return entry if isinstance(entry, str) else tuple(map(str, entry))


def _with_tuples(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {**values, **{name: tuple(values[name]) for name in names}}


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _without_region(name: str) -> str:
    """Remove the region of a BCP 47 tag: two letters or three digits at its end."""
    return re.sub(r"(?<=.)-([a-z]{2}|[0-9]{3})$", "", _fold(name))
