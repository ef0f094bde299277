# SPDX-License-Identifier: Apache-2.0
"""The models of a running server: their states, and loading them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ct2_triton.client.servers import parse_url
from ct2_triton.connection_arguments import credentials
from ct2_triton.errors import (
    ClientError,
    ConnectionLostError,
    ServerUnreachableError,
    VersionError,
)
from ct2_triton.serve.http_probe import ModelState

if TYPE_CHECKING:
    import argparse

_TIMEOUT_S = 5.0
_LOAD_TIMEOUT_S = 600.0
_WITHOUT_ANSWER = {"StatusCode.DEADLINE_EXCEEDED", "StatusCode.CANCELLED"}


class RunningServer:
    """A client of one server's model control."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Connect as the arguments `url` and those of `add_access_arguments` say, or raise."""
        import grpc
        from tritonclient.grpc import InferenceServerClient
        from tritonclient.utils import InferenceServerException

        self.url = args.url
        self._headers = dict(args.header)
        self._refusal = InferenceServerException
        address = parse_url(self.url)
        chosen = credentials(args)
        if address.has_tls and chosen is None:
            chosen = grpc.ssl_channel_credentials()
        self._client = InferenceServerClient(address.target, creds=chosen, ssl=chosen is not None)
        try:
            self._client.is_server_live(headers=self._headers, client_timeout=_TIMEOUT_S)
        except InferenceServerException as error:
            raise ServerUnreachableError(
                f"no Triton server answers at {self.url}: {error.message()}"
            ) from error

    def model_states(self) -> list[ModelState]:
        """Return the index of models: an entry for each version."""
        try:
            index = self._client.get_model_repository_index(
                headers=self._headers, client_timeout=_TIMEOUT_S
            )
        except self._refusal as error:
            raise ClientError(
                f"{self.url} does not say which models it has: {error.message()}"
            ) from error
        return [ModelState(one.name, one.version, one.state, one.reason) for one in index.models]

    def load(self, name: str) -> None:
        """Make a server with explicit model control load or reload a model.

        Raises ConnectionLostError if the server did not answer; it may still be loading.
        """
        try:
            self._client.load_model(name, headers=self._headers, client_timeout=_LOAD_TIMEOUT_S)
        except self._refusal as error:
            if error.status() in _WITHOUT_ANSWER or not self._is_live():
                raise ConnectionLostError(str(error.message())) from error
            raise VersionError(error.message()) from error

    def _is_live(self) -> bool:
        """Return whether the server still answers; a lost server has not refused the request."""
        try:
            self._client.is_server_live(headers=self._headers, client_timeout=_TIMEOUT_S)
        except self._refusal:
            return False
        return True
