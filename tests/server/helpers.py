# SPDX-License-Identifier: Apache-2.0
"""What the tests of the live backend share: a plain client, and CTranslate2 itself as the truth."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ctranslate2
import numpy as np
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from ct2_triton.serve import TritonServer

Ids = list[int]
Outputs = dict[str, "np.ndarray[Any, Any]"]

END = 2  # </s> of the tiny NLLB model


def padded(rows: Sequence[Sequence[int]], fill: int = 1) -> np.ndarray[Any, Any]:
    """Rows as a matrix, filled up at the end. No rows give shape [0, 0]."""
    width = max((len(row) for row in rows), default=0)
    matrix = np.full((len(rows), width), fill, dtype=np.int32)
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix


def tensor(name: str, values: Any) -> grpc_client.InferInput:
    """An input tensor; lists become INT32, arrays keep their type."""
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=np.int32)
    result = grpc_client.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    result.set_data_from_numpy(array)
    return result


def post(
    server: TritonServer, path: str, body: Any, headers: Iterable[tuple[str, str]] = ()
) -> tuple[int, str]:
    """Sends JSON, or a text as it is, to a path of the models; gives the status and the answer."""
    sent = (body if isinstance(body, str) else json.dumps(body)).encode()
    wire = http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=600)
    try:
        wire.putrequest("POST", f"/v2/models/{path}")
        for name, value in [("Content-Length", str(len(sent))), *headers]:
            wire.putheader(name, value)
        wire.endheaders(sent)
        answer = wire.getresponse()
        return answer.status, answer.read().decode()
    finally:
        wire.close()


def json_inputs(datatype: str, values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Inputs of one row for a JSON body."""
    return [
        {"name": name, "datatype": datatype, "shape": [1, len(row)], "data": row}
        for name, row in values.items()
    ]


class Pending:
    """A request on its way."""

    call: Any
    answered_s: float
    """When the answer came, on the monotonic clock."""

    def __init__(self) -> None:
        self._answers: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

    def done(self, result: Any, error: Exception | None) -> None:
        """Takes the answer."""
        self.answered_s = time.monotonic()
        self._answers.put((result, error))

    def has_ended(self) -> bool:
        """Whether there is an answer."""
        return not self._answers.empty()

    def get_result(self, timeout: float = 600) -> Any:
        """Waits for the answer; raises what the server says. May be called again."""
        answer = self._answers.get(timeout=timeout)
        self._answers.put(answer)
        result, error = answer
        if error is not None:
            raise error
        return result

    def cancel(self) -> None:
        """Cancels the request, as a client that has gone does."""
        self.call.cancel()


class Connection:
    """A gRPC client that speaks in ids."""

    def __init__(self, url: str) -> None:
        self.raw = grpc_client.InferenceServerClient(url)

    def infer(self, model: str, *args: Any, **kwargs: Any) -> Outputs:
        """Sends a request, waits, gives its outputs by name. For arguments see `start`."""
        result = self.start(model, *args, **kwargs).get_result()
        names = [output.name for output in result.get_response().outputs]
        return {name: result.as_numpy(name) for name in names}

    def start(
        self,
        model: str,
        ids: Any,
        prefix: Any = None,
        *,
        outputs: Sequence[str] | None = ("OUTPUT_IDS",),
        more: dict[str, Any] | None = None,
        version: str = "",
        request_id: str = "",
        **parameters: Any,
    ) -> Pending:
        """Sends a request; `more` are further inputs, `outputs` None asks for none by name."""
        inputs = [tensor("INPUT_IDS", ids)]
        if prefix is not None:
            inputs.append(tensor("TARGET_PREFIX", prefix))
        inputs += [tensor(name, values) for name, values in (more or {}).items()]
        return self.send(model, inputs, outputs, version, request_id, **parameters)

    def send(
        self,
        model: str,
        inputs: list[grpc_client.InferInput],
        outputs: Sequence[str] | None = None,
        version: str = "",
        request_id: str = "",
        **parameters: Any,
    ) -> Pending:
        """Sends a request with these inputs."""
        pending = Pending()
        timeout = parameters.pop("timeout", None)  # microseconds; tritonclient wants it apart
        pending.call = self.raw.async_infer(
            model,
            inputs,
            pending.done,
            model_version=version,
            request_id=request_id,
            outputs=outputs and [grpc_client.InferRequestedOutput(name) for name in outputs],
            parameters=parameters or None,
            timeout=timeout,
        )
        return pending

    def translate(
        self, model: str, row: Sequence[int], prefix: Sequence[int] = (), **parameters: Any
    ) -> Ids:
        """Sends one row and gives the ids of its best hypothesis."""
        answer = self.infer(model, [list(row)], [list(prefix)], **parameters)
        ids: Ids = answer["OUTPUT_IDS"][0].tolist()
        return ids

    def refusal(self, *args: Any, **kwargs: Any) -> str:
        """Sends a request that must be refused as the client's mistake; gives the message."""
        try:
            answer = self.infer(*args, **kwargs)
        except InferenceServerException as error:
            if error.status() == "StatusCode.INVALID_ARGUMENT":
                return str(error.message())
            raise
        raise AssertionError(f"accepted, answered {answer}")

    def statistics(self, model: str) -> Any:
        """The server's statistics of one model."""
        return self.raw.get_inference_statistics(model).model_stats[0]

    def close(self) -> None:
        """Closes the connection."""
        self.raw.close()


class Reference:
    """CTranslate2's own translator on the same files, one row at a time, float32."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.vocabulary: list[str] = json.loads((folder / "shared_vocabulary.json").read_text())
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        self._translator = ctranslate2.Translator(
            str(folder), device, compute_type="float32", inter_threads=1, intra_threads=1
        )

    def id(self, token: str) -> int:
        """The id of a token."""
        return self._ids[token]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens of ids."""
        return [self.vocabulary[i] for i in ids]

    def run(self, row: Sequence[int], prefix: Sequence[int] = (), **options: Any) -> Any:
        """The translation result of one row."""
        return self._translator.translate_batch(
            [self.tokens(row)], target_prefix=[self.tokens(prefix)], **options
        )[0]

    def run_together(
        self, rows: Sequence[tuple[Sequence[int], Sequence[int]]], **options: Any
    ) -> Any:
        """The translation results of rows, with their prefixes, that share calls."""
        return self._translator.translate_batch(
            [self.tokens(row) for row, _ in rows],
            target_prefix=[self.tokens(prefix) for _, prefix in rows],
            **options,
        )

    def hypotheses(
        self, row: Sequence[int], prefix: Sequence[int] = (), **options: Any
    ) -> list[Ids]:
        """Ids of all hypotheses of one row, best first."""
        result = self.run(row, prefix, **options)
        return [[self._ids[token] for token in hypothesis] for hypothesis in result.hypotheses]

    def translate(self, row: Sequence[int], prefix: Sequence[int] = (), **options: Any) -> Ids:
        """Ids of the best hypothesis of one row."""
        return self.hypotheses(row, prefix, **options)[0]


LANGUAGES = ("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn")


def sentences(reference: Reference, count: int, seed: int = 7) -> list[tuple[Ids, Ids]]:
    """Rows of very different lengths, each with the prefix of one of four languages."""
    chooser = random.Random(seed)
    english = reference.id("eng_Latn")
    rows = []
    for i in range(count):
        length = min(60, max(1, round(chooser.lognormvariate(2.4, 0.8))))
        pieces = [chooser.randrange(4, 1100) for _ in range(length)]
        prefix = [reference.id(LANGUAGES[i % len(LANGUAGES)])]
        rows.append(([english, *pieces, END], prefix))
    return rows
