# SPDX-License-Identifier: Apache-2.0
"""The settings that all sentences of a call share: languages, options, keys and headers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ct2_triton.client.results import empty_translation
from ct2_triton.errors import InvalidCallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from tritonclient.grpc import service_pb2

    from ct2_triton.client.results import Translation
    from ct2_triton.client.retry import Deadline
    from ct2_triton.client.stream import Sentence, Superseded
    from ct2_triton.errors import ClientError
    from ct2_triton.prepared_model import Language

    OptionValue = bool | int | float | str | Sequence[Any]
    Rows = dict[str | None, Callable[[], Coroutine[Any, Any, Translation]]]
    """What translates a text, for each language."""
    Build = Callable[[Any, float | None], service_pb2.ModelInferRequest]
    """Makes a request to a version of the model, for the seconds that are left."""

Headers = tuple[tuple[str, str], ...]

SUPERSEDE_KEY = "supersede_key"  # the request's parameter
MAX_KEY_BYTES = 256
_NAME = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[ -~]*")


def asks_for_verdicts(options: Mapping[str, OptionValue]) -> bool:
    """Return whether a call with these decoding options wants verdicts."""
    return bool(options.get("quality")) or options.get("on_doubt", "none") != "none"


@dataclass(frozen=True)
class Call:
    """The settings that all sentences of a call share."""

    source: Language | None
    targets: tuple[Language | None, ...]
    options: Mapping[str, OptionValue]
    start_clock: Callable[[], Deadline]
    supersede: str | None = None
    prefix: str | tuple[int, ...] = ""
    draft: str | tuple[int, ...] = ""
    session: str | None = None
    headers: Headers = ()

    @property
    def judged(self) -> bool:
        """Whether verdicts are requested."""
        return asks_for_verdicts(self.options)

    @property
    def codes(self) -> tuple[str | None, ...]:
        """The targets' codes."""
        return tuple(code_of(target) for target in self.targets)


@dataclass(frozen=True)
class Text:
    """A text for a text model.

    Attributes:
        text: The text.
        source: Its language; None for the model's default, or for a model of one language pair.
        targets: Target languages; `(None,)` for a model of one language pair.
        prefix: Text with which the translation into one language must begin; "" for none.
        draft: Expected translation; "" for none.
    """

    text: str
    source: str | None
    targets: tuple[str | None, ...]
    prefix: str = ""
    draft: str = ""


if TYPE_CHECKING:
    Ask = Callable[[Build, Call, str, str | None], Awaitable[service_pb2.ModelInferResponse]]
    """Sends what is built for a text, with a key or None, as the call's clock and policy allow."""


def texts_of(text: object) -> Sequence[str]:
    """Return the sentences that a caller gave: one, or a sequence."""
    if isinstance(text, str):
        return [text]
    if isinstance(text, (bytes, bytearray, Mapping)) or not hasattr(text, "__getitem__"):
        raise InvalidCallError(
            f"text is {text!r:.80}; it must be a string or a sequence of strings"
        )
    sentences = cast("Sequence[str]", text)
    for number, one in enumerate(sentences):
        if not isinstance(one, str):
            raise InvalidCallError(f"text[{number}] is {one!r:.80}; a sentence is a string")
    return sentences


def row_key(prefix: str, *parts: object) -> str:
    """Make the key of a row, unique in its call.

    The parts identify the row; None is left out.
    """
    if not isinstance(prefix, str) or not prefix:
        raise InvalidCallError(f"supersede is {prefix!r}; it must be a text that is not empty")
    key = "/".join([prefix, *(str(part) for part in parts if part is not None)])
    size = len(key.encode(errors="replace"))
    if size > MAX_KEY_BYTES:
        raise InvalidCallError(
            f"supersede gives the key {key[:40]!r}... of {size} bytes; at most "
            f"{MAX_KEY_BYTES} are allowed"
        )
    return key


def sentence_key(prefix: str, sentence: Sentence, superseded: Superseded) -> str | None:
    """Make the key that all versions of a sentence share; None if there are no other versions."""
    if sentence.id is None or superseded == "keep":
        return None
    return row_key(prefix, sentence.id)


def read_headers(metadata: Mapping[str, str] | None) -> Headers:
    """Read headers; gRPC accepts names in lower case only."""
    headers = tuple((name.lower(), value) for name, value in (metadata or {}).items())
    for name, value in headers:
        if not _NAME.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
            raise InvalidCallError(
                f"metadata has the name {name!r}; it must be of letters, digits, '-', '_' and '.', "
                "and neither begin with 'grpc-' nor end in '-bin'"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise InvalidCallError(
                f"metadata has {value!r} for {name!r}; it must be a text of printable ASCII"
            )
    return headers


def join_headers(of_client: Headers, of_call: Headers) -> Headers | None:
    """Merge the headers of client and call; those of the call win. None for none."""
    return tuple({**dict(of_client), **dict(of_call)}.items()) or None


async def blank(text: str, call: Call, code: str | None) -> Translation:
    """Return the result for a text without a visible character."""
    return empty_translation(text, code_of(call.source), code, judged=call.judged)


async def failed(error: ClientError) -> Translation:
    """Raise an error when awaited."""
    raise error


def code_of(language: Language | None) -> str | None:
    """Return a language's code; None for None."""
    return None if language is None else language.code


def is_unicode(text: str) -> bool:
    """Return whether a text can be sent: JSON and a shell can pass half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
