# SPDX-License-Identifier: Apache-2.0
"""A web service that translates: one client for all requests, one status for each kind of error.

uvicorn --app-dir examples web_handler:app --port 8080
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from ct2_triton import errors
from ct2_triton.client import TranslationClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

URL = os.environ.get("CT2_URL", "localhost:8001")
MODEL = os.environ.get("CT2_MODEL", "demo")
# The first that fits counts; an error that is none of these is the service's own: 500.
STATUS = {
    errors.InvalidCallError: 400,
    errors.UnknownLanguageError: 400,
    errors.RequestRejectedError: 400,
    errors.DeadlineExceededError: 504,
    errors.ServerBusyError: 503,
    errors.ServerUnreachableError: 503,
    errors.ConnectionLostError: 503,
}


class Wish(BaseModel):
    """What is to be translated."""

    text: str
    source: str = "en"
    targets: list[str]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep one client open: it shares its connection among all requests."""
    async with TranslationClient(URL, MODEL, timeout_s=10) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/translate")
async def translate(wish: Wish, request: Request) -> dict[str, str]:
    """Translate a text into each language."""
    answers = await request.app.state.client.translate(
        wish.text, source=wish.source, targets=wish.targets
    )
    names = zip(wish.targets, answers, strict=True)
    return {target: answer.text for target, answer in names}


@app.exception_handler(errors.ClientError)
async def explain(_request: Request, error: errors.ClientError) -> JSONResponse:
    """Answers an error with its reason."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error)}, status)
