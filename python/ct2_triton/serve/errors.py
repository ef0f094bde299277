# SPDX-License-Identifier: Apache-2.0
"""Errors of finding, starting and running a tritonserver."""

from __future__ import annotations

from ct2_triton.errors import Ct2TritonError


class ServeError(Ct2TritonError):
    """Base of the errors of ``ct2_triton.serve``."""


class PluginMissingError(ServeError):
    """The package was installed without the Triton backend: install it on Linux x86-64."""


class ServerNotFoundError(ServeError):
    """There is no tritonserver: install the ``server`` extra or name one with TRITONSERVER."""


class BackendFolderError(ServeError):
    """The backend folder cannot be written: free the path that the message names."""


class ModelRepositoryError(ServeError):
    """The model repository cannot be served as it is: change what the message names."""


class PortInUseError(ServeError):
    """An address or port is not available: choose another one, or free ports."""


class ServerStartError(ServeError):
    """tritonserver did not become ready: the message has the relevant lines of its log."""
