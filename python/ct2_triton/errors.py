# SPDX-License-Identifier: Apache-2.0
"""The one exception tree of ct2-triton. Each class says what the caller can do about it."""

from __future__ import annotations


class Ct2TritonError(Exception):
    """Base of every error this package raises on purpose; catch it to catch them all."""


class ClientError(Ct2TritonError):
    """Base of what the translation client raises."""


class ServerUnreachableError(ClientError):
    """No connection to the server: check the URL, and that tritonserver runs and is ready."""


class ConnectionLostError(ClientError):
    """The connection broke after a request was sent: read the server's log before repeating."""


class DeadlineExceededError(ClientError):
    """No answer within the call's timeout: send less at once, or allow more time."""


class RequestRejectedError(ClientError):
    """The server refused the request as malformed: correct what the message names."""


class ModelNotFoundError(ClientError):
    """The server does not have this model: check the name and what the server loaded."""


class ServerBusyError(ClientError):
    """The server is reachable but takes no request now: send more slowly, or try later."""


class AccessDeniedError(ClientError):
    """The server keeps this client out: send the header or the certificate that it asks for."""


class SupersededError(ClientError):
    """A newer request with the same key took this one's place: use the answer of that one."""


class ServerFailedError(ClientError):
    """The server failed while it worked on the request: its log says why."""


class UnexpectedResponseError(ClientError):
    """The model's tensors are not those of docs/protocol.md: check which model is addressed."""


class UnknownLanguageError(ClientError):
    """The model does not have this language: use one of the codes that the message names."""


class TokenizerError(ClientError):
    """The tokenizer files are missing or unusable: name a prepared model's tokenizer folder."""


class InvalidCallError(ClientError):
    """The call itself cannot work, whatever the server says: correct its arguments."""


class MalformedLineError(ClientError):
    """A line of the input holds no sentence: correct the line; the others are not concerned."""


class PreparedModelError(Ct2TritonError):
    """A prepared model cannot be read: name a folder that ct2-prepare wrote, or prepare again."""


class PrepareError(Ct2TritonError):
    """Base of what ct2-prepare raises; nothing was written, what existed is as it was."""


class SourceError(PrepareError):
    """The checkpoint cannot be had: check what the message names (id, network, access)."""


class UnsupportedModelError(PrepareError):
    """The checkpoint is of no known family, or lacks files: choose one of the families named."""


class MissingPackageError(PrepareError):
    """A package is missing or of a version that does not work: install what the message names."""


class ConversionError(PrepareError):
    """CTranslate2's converter refused the checkpoint: its words are in the message."""


class VerificationError(PrepareError):
    """The converted model differs from its source: do not serve it; report the message."""


class SettingError(PrepareError):
    """A --set value or option is not possible: correct what the message names."""


class VersionError(PrepareError):
    """Versions of a model cannot be as asked for: the message says what differs or is missing."""


class OutputError(PrepareError):
    """The result cannot be written: choose another place, or replace what is there with --force."""
