# SPDX-License-Identifier: Apache-2.0
"""The fields of a request: members of JSON, or fields of a form or of the query."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from ct2_triton.client.calls import is_unicode
from ct2_triton.client.tasks import in_time
from ct2_triton.gateway.refusals import Refusal
from ct2_triton.web import BODY_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_SHOWN = 80
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,80}\s*")
# The values of true and false in a form; Python programs capitalize them.
SWITCHES = {"true": True, "True": True, "false": False, "False": False, "": False}


class Fields:
    """The fields of one request. An invalid one raises a Refusal with status 400."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        """Take the members as received; those of a form are strings, or lists of strings."""
        self._members = members

    def texts(self, name: str) -> str | list[str]:
        """Return a required field: a string, or a list of strings."""
        value = self._members.get(name)
        if value is None or value in ("", []):
            raise _missing(name)
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise Refusal(400, f"Invalid request: {name} must be a string or a list of strings")
        if not all(map(is_unicode, texts)):
            raise Refusal(400, f"Invalid request: {name} has half of a surrogate pair")
        return value  # type: ignore[no-any-return]

    def text(self, name: str) -> str:
        """Return a required field: a string."""
        value = self.texts(name)
        if not isinstance(value, str):
            raise Refusal(400, f"Invalid request: {name} must be one string")
        return value

    def choice(self, name: str, default: str) -> str:
        """Return an optional field: a string."""
        return default if self._members.get(name) in (None, "") else self.text(name)

    def count(self, name: str, most: int) -> int:
        """Return an optional field: a whole number, also as a string; a negative one becomes 0."""
        value = self._members.get(name)
        if value is None or value == "":
            return 0
        if isinstance(value, float) and value.is_integer():  # JSON has one number type
            value = int(value)
        said = value if isinstance(value, str) else json.dumps(value)
        if not _WHOLE.fullmatch(said):
            raise Refusal(400, f"Invalid request: {name} parameter is not a number")
        if int(said) > most:
            raise Refusal(400, f"Invalid request: {name} parameter must be <= {most}")
        return max(int(said), 0)

    def switch(self, name: str) -> bool:
        """Return an optional field: a boolean, also as a string.

        Raises:
            Refusal: It is something else.
        """
        value = self._members.get(name)
        if value is None:
            return False
        said = value if isinstance(value, str) else json.dumps(value)
        if said not in SWITCHES:
            raise Refusal(
                400, f"Invalid request: {name} is {said[:_SHOWN]}; it must be true or false"
            )
        return SWITCHES[said]

    def file(self, name: str) -> tuple[str, bytes]:
        """Return a required file: its name and content."""
        value = self._members.get(name)
        if value is None or value == "":
            raise _missing(name)
        if not hasattr(value, "filename"):
            raise Refusal(
                400, f"Invalid request: {name} must be one file of a form (multipart/form-data)"
            )
        return value.filename, value.file.read()

    def key(self) -> str:
        """Return the key of the request; "" if it has none."""
        value = self._members.get("api_key")
        return value if isinstance(value, str) else ""


async def read_fields(request: web.Request, timeout_s: float) -> Fields:
    """Read the fields of a request in any supported encoding.

    Raises Refusal for fields that cannot be read, or not in time, and if the client disconnected.
    """
    try:
        if request.content.is_eof():  # the body came with the header: no time limit
            return await _read(request)
        return await in_time(_read(request), timeout_s)
    except asyncio.TimeoutError as error:
        raise Refusal(408, f"the request did not arrive within {timeout_s:g} s") from error
    except ConnectionError as error:  # the client has disconnected
        raise Refusal(400, "Invalid request: the body is not complete") from error
    except BODY_ERRORS as error:
        packed = request.headers.get("Content-Encoding")
        why = f": it is not in {packed[:_SHOWN]!r}, its Content-Encoding" if packed else ""
        raise Refusal(400, f"Invalid request: the body cannot be read{why}") from error
    except (LookupError, ValueError) as error:  # of an invalid form or charset
        raise Refusal(400, "Invalid request: the body cannot be read") from error


async def _read(request: web.Request) -> Fields:
    if request.content_type == "application/json" or request.content_type.endswith("+json"):
        try:
            members = json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"Invalid JSON format: {error}") from error
        if not isinstance(members, dict):
            raise Refusal(400, "Invalid JSON format: the body must be an object")
        return Fields(members)
    members = _joined(request.query)
    if request.content_type in _FORMS:
        members |= _joined(await request.post())
        if any(name.lstrip().startswith("{") for name in members):
            raise Refusal(
                400,
                "Invalid request: a body of JSON needs the header Content-Type: application/json",
            )
    return Fields(members)


def _joined(fields: Any) -> dict[str, Any]:  # noqa: ANN401 - a MultiDict of either kind
    """Return each field, with a list of values if it is repeated. Lines of a form end in CR LF."""
    found: dict[str, Any] = {}
    for name in fields:
        values = [
            value.replace("\r\n", "\n") if isinstance(value, str) else value
            for value in fields.getall(name)
        ]
        found[name] = values[0] if len(values) == 1 else values
    return found


def _missing(name: str) -> Refusal:
    return Refusal(400, f"Invalid request: missing {name} parameter")
