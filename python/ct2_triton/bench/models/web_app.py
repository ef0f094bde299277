# SPDX-License-Identifier: Apache-2.0
"""The FastAPI service of one process: Hugging Face `generate`, one request at a time.

Calls run on a single thread of an executor, where requests queue while the event loop accepts
further ones, because two concurrent calls on the same cores would slow each other down. Each model
name has its own weights, as different models would.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from ct2_triton.bench.models.hugging_face import HuggingFaceTranslator
from ct2_triton.bench.setup import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.bench.models.translator import Settings


class Question(BaseModel):
    """The body of a request: INPUT_IDS and TARGET_PREFIX of docs/protocol.md."""

    input_ids: tuple[int, ...]
    target_prefix: tuple[int, ...] = ()


class Answer(BaseModel):
    """The body of a response: OUTPUT_IDS."""

    output_ids: list[int]


def make_app(settings: Settings, models: Sequence[str]) -> FastAPI:
    """Make the service `POST /translate/<model>` for these names, and load its models."""
    translators = {model: HuggingFaceTranslator(settings) for model in models}
    executor = ThreadPoolExecutor(1)
    app = FastAPI()

    @app.post("/translate/{model}")
    async def translate(model: str, question: Question) -> Answer:
        """Translate one row."""
        row = Row(question.input_ids, question.target_prefix)
        translator = translators.get(model)
        if translator is None:
            raise HTTPException(404, f"no model {model!r}")
        try:
            translator.check(row)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        loop = asyncio.get_running_loop()
        (answer,) = await loop.run_in_executor(executor, translator.translate, [row])
        return Answer(output_ids=answer)

    return app
