# SPDX-License-Identifier: Apache-2.0
"""The exceptions of ct2-triton. Each class says what the caller can do."""

from __future__ import annotations


class Ct2TritonError(Exception):
    """Base of all errors that this package raises."""


class ClientError(Ct2TritonError):
    """Base of the translation client's errors."""


class ServerUnreachableError(ClientError):
    """No connection to the server: check the URL, and that tritonserver runs and is ready."""


class ConnectionLostError(ClientError):
    """The connection broke after a request was sent: read the server's log before repeating."""


class DeadlineExceededError(ClientError):
    """No answer within the call's timeout: send less at once, or allow more time."""


class RequestRejectedError(ClientError):
    """The server refused the request as malformed: correct what the message names."""


class ModelNotFoundError(ClientError):
    """The server does not have this model: check the name and the models that it loaded."""


class ServerBusyError(ClientError):
    """The server is busy, or its model loads or ends: send more slowly, or try later."""


class AccessDeniedError(ClientError):
    """The server denies access: send the header or the certificate that it requires."""


class SupersededError(ClientError):
    """A newer request with the same key replaced this one: use its answer."""


class ServerFailedError(ClientError):
    """The server failed during the request: see its log."""


class UnexpectedResponseError(ClientError):
    """The model's tensors are not those of docs/protocol.md: check the model's name."""


class UnknownLanguageError(ClientError):
    """The model does not have this language: use one of the codes that the message names."""


class TokenizerError(ClientError):
    """The tokenizer files are missing or unusable: name a prepared model's tokenizer folder."""


class InvalidCallError(ClientError):
    """The arguments of the call are invalid: correct them."""


class MalformedLineError(ClientError):
    """A line of the input has no sentence: correct it; other lines are not affected."""


class PreparedModelError(Ct2TritonError):
    """A prepared model cannot be read: name a folder of ct2-prepare, or prepare it again."""


class PrepareError(Ct2TritonError):
    """Base of ct2-prepare's errors; nothing was written or changed."""


class SourceError(PrepareError):
    """The checkpoint is not available: check what the message names (ID, network, access)."""


class UnsupportedModelError(PrepareError):
    """The checkpoint's family is not supported, or files are missing: see the message."""


class MissingPackageError(PrepareError):
    """A package is missing or its version is unsupported: install what the message names."""


class ConversionError(PrepareError):
    """CTranslate2's converter refused the checkpoint: the message has its reason."""


class VerificationError(PrepareError):
    """The converted model differs from its source: do not serve it; report the message."""


class SettingError(PrepareError):
    """A --set value or an option is invalid: correct what the message names."""


class VersionError(PrepareError):
    """The versions of a model cannot be changed so: the message says what differs or is missing."""


class OutputError(PrepareError):
    """The result cannot be written: choose another place, or overwrite it with --force."""
