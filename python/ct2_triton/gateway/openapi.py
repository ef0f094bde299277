# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 document of the API, with this gateway's languages and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ct2_triton import __version__
from ct2_triton.gateway.bodies import SWITCHES
from ct2_triton.gateway.files import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ct2_triton.gateway.admission import Limits
    from ct2_triton.gateway.catalog import Catalog

_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_PARTS = "multipart/form-data"
_STRING: dict[str, Any] = {"type": "string", "minLength": 1}
_KEY = {"description": "Key, where one is needed"}
_LOST = {"type": "array", "description": "Terms that the translation lacks, if there are any"}
_ERRORS = {
    "400": "The request cannot be answered; the text says why",
    "403": "A key is wrong",
    "408": "The request did not arrive in time",
    "413": "The body is too large",
    "429": "Too many requests are being translated",
    "500": "The Triton server failed",
    "503": "The Triton server accepts no requests at the moment",
    "504": "No answer in time",
}


def document(
    catalog: Catalog,
    limits: Limits,
    formats: Iterable[str],
    glossaries: Iterable[str],
    *,
    has_files: bool,
) -> dict[str, Any]:
    """Write the document."""
    named = {
        "type": "string",
        "enum": [*glossaries, ""],
        "default": "",
        "description": "Name of a glossary that the server has; empty for none",
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ct2-gateway",
            "version": __version__,
            "description": "LibreTranslate's API, served by ct2-triton.",
        },
        "paths": {
            "/translate": {"post": _translate(catalog, limits, formats, named)},
            "/detect": {"post": _detect()},
            "/languages": {"get": _get("The languages", _languages(), ())},
            "/frontend/settings": {"get": _get("What pages need to know", {"type": "object"}, ())},
            "/health": {
                "get": _get("Whether the Triton server answers", _object(status=_STRING), ("503",))
            },
            **(_files(named) if has_files else {}),
            "/suggest": {"post": _refused("Suggestions are not accepted")},
        },
    }


def _translate(
    catalog: Catalog, limits: Limits, formats: Iterable[str], glossary: dict[str, Any]
) -> dict[str, Any]:
    codes = sorted(catalog.languages)
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    fields = {
        "q": {
            "anyOf": [_STRING, texts | {"maxItems": limits.max_texts}],
            "description": "Text, or a list of texts",
        },
        "source": _STRING | {"enum": ["auto", *catalog.sources], "description": "Its language"},
        "target": _STRING | {"enum": codes, "description": "Language wanted"},
        "format": {
            "type": "string",
            "enum": [*formats, ""],
            "default": "text",
            "description": "What the text is; empty as in a form that leaves it out: the default",
        },
        "alternatives": {"type": "integer", "maximum": limits.max_alternatives},
        "glossary": glossary,
        "quality": {
            "enum": [True, False, *SWITCHES, None],
            "default": False,
            "description": "Whether the server judges each translation",
        },
        "api_key": _KEY,
    }
    one_or_list: dict[str, Any] = {"type": ["string", "array"]}
    answer = _object(
        translatedText=one_or_list,
        detectedLanguage={"anyOf": [_detection(), {"type": "array", "items": _detection()}]},
        alternatives={"type": "array"},
        quality={"type": ["number", "array"], "description": "0 to 1, below 0.5 where flagged"},
        qualityFlags={"type": "array", "description": "Suspected faults"},
        qualityNotComputed={"type": "array", "description": "Flags that could not be computed"},
        lostTerms=_LOST,
    )
    answer["required"] = ["translatedText"]
    errors = sorted(_ERRORS)
    # In a form, a list of one empty text is an empty field.
    lists = texts | {"maxItems": limits.max_texts, "anyOf": [{"minItems": 2}, {"items": _STRING}]}
    in_form = {"q": {"anyOf": [_STRING, lists]}, "quality": {"enum": list(SWITCHES)}}
    return _post("Translate texts", fields, ["q", "source", "target"], answer, errors, in_form)


def _detect() -> dict[str, Any]:
    fields = {"q": _STRING | {"description": "Text"}, "api_key": _KEY}
    answer = {"type": "array", "items": _detection()}
    return _post(
        "Detect the language of a text", fields, ["q"], answer, ("400", "403", "408", "413")
    )


def _files(glossary: dict[str, Any]) -> dict[str, Any]:
    """Return the routes for files."""
    fields = {
        "file": {"type": "string", "format": "binary", "description": " ".join(SUFFIXES)},
        "source": _STRING | {"description": "Its language, or auto"},
        "target": _STRING | {"description": "Language wanted"},
        "glossary": glossary,
        "api_key": _KEY,
    }
    body = {"type": "object", "properties": fields, "required": ["file", "source", "target"]}
    answer = _object(translatedFileUrl=_STRING, lostTerms=_LOST)
    answer["required"] = ["translatedFileUrl"]
    translate = {
        "summary": "Translate a file",
        "requestBody": {"required": True, "content": {_PARTS: {"schema": body}}},
        "responses": _responses(answer, sorted(_ERRORS)),
    }
    name = {"name": "name", "in": "path", "required": True, "schema": _STRING}
    download = {
        "summary": "Fetch a translated file, for half an hour",
        "parameters": [name],
        "responses": {
            "200": {"description": "The file", "content": {"*/*": {}}},
            "404": _error("There is no such file, or not any more"),
        },
    }
    return {"/translate_file": {"post": translate}, "/download_file/{name}": {"get": download}}


def _detection() -> dict[str, Any]:
    confidence = {"type": "number", "minimum": 0, "maximum": 100}
    return _object(language=_STRING, confidence=confidence)


def _languages() -> dict[str, Any]:
    targets = {"type": "array", "items": {"type": "string"}}
    return {"type": "array", "items": _object(code=_STRING, name=_STRING, targets=targets)}


def _object(**members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


def _post(
    summary: str,
    fields: dict[str, Any],
    required: list[str],
    answer: dict[str, Any],
    errors: Iterable[str],
    in_form: dict[str, Any] | None = None,
) -> dict[str, Any]:
    body = {"type": "object", "properties": fields, "required": required}
    form = body | {"properties": fields | (in_form or {})}
    return {
        "summary": summary,
        "requestBody": {
            "required": True,
            "content": {_JSON: {"schema": body}, _FORM: {"schema": form}},
        },
        "responses": _responses(answer, errors),
    }


def _get(summary: str, answer: dict[str, Any], errors: Iterable[str]) -> dict[str, Any]:
    return {"summary": summary, "responses": _responses(answer, errors)}


def _refused(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"403": _error(summary)}}


def _responses(answer: dict[str, Any], errors: Iterable[str]) -> dict[str, Any]:
    good = {"description": "The answer", "content": {_JSON: {"schema": answer}}}
    return {"200": good, **{code: _error(_ERRORS[code]) for code in errors}}


def _error(description: str) -> dict[str, Any]:
    schema = _object(error={"type": "string"})
    return {"description": description, "content": {_JSON: {"schema": schema}}}
