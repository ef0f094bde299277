# SPDX-License-Identifier: Apache-2.0
"""How translations of a line are written: as a line, or as an object of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from ct2_triton.client.calls import is_unicode
from ct2_triton.errors import ClientError

if TYPE_CHECKING:
    from ct2_triton.client.results import Hypothesis, Translation
    from ct2_triton.client.stream import StreamItem
    from ct2_triton.translate.inputs import Line


_OWN = ("file", "line", "text", "translations", "input")


def text_of(item: StreamItem) -> str:
    """Give a translation as one line; an empty one where it failed."""
    failed = isinstance(item.outcome, ClientError)
    return "" if failed else " ".join(item.translation.text.splitlines())


def write_json(value: object) -> str:
    """Write a line of JSON, without its end; what JSON does not know becomes text.

    Letters are escaped only where it holds half of a surrogate pair.
    """
    line = json.dumps(value, ensure_ascii=False, default=str)
    return line if is_unicode(line) else json.dumps(value, default=str)


def as_json(items: list[StreamItem]) -> dict[str, Any]:
    """Give all translations of a line, one for each language in order, as an object.

    Fields of the input whose names are those of answers stand in `input`.
    """
    first = items[0]
    answers = []
    for item in items:
        if isinstance(item.outcome, ClientError):
            answers.append({"target": item.target, "error": str(item.outcome)})
        else:
            answers.append({"target": item.target, **_answer(item.outcome)})
    line = cast("Line", first.sentence)
    place = {} if line.file is None else {"file": str(line.file)}
    text = {} if line.problem is not None else {"text": line.text}
    own = {**place, "line": line.number, **text, "translations": answers}
    given = {name: value for name, value in line.fields.items() if name not in _OWN}
    nested = {name: value for name, value in line.fields.items() if name in _OWN}
    return {**given, **({"input": nested} if nested else {}), **own}


def _answer(translation: Translation) -> dict[str, Any]:
    answer = _hypothesis(translation.hypotheses[0])
    if translation.version:
        answer["version"] = translation.version
    if translation.unknown_tokens:
        answer["unknown_tokens"] = translation.unknown_tokens
    if translation.verdict is not None:
        answer["verdict"] = translation.verdict.to_dict()
    if len(translation.hypotheses) > 1:
        answer["hypotheses"] = [_hypothesis(one) for one in translation.hypotheses]
    return answer


def _hypothesis(one: Hypothesis) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": one.text, "score": one.score}
    fields["finish_reason"] = one.finish_reason
    fields |= {"ids": one.alignments and one.ids, "alignments": one.alignments}
    return {name: value for name, value in fields.items() if value is not None}
