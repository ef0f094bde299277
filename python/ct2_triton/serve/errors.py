# SPDX-License-Identifier: Apache-2.0
"""What finding, starting and running a tritonserver can raise."""

from __future__ import annotations

from ct2_triton.errors import Ct2TritonError


class ServeError(Ct2TritonError):
    """Base of what ``ct2_triton.serve`` raises."""


class PluginMissingError(ServeError):
    """The package was installed without the Triton backend: install it on Linux x86-64."""


class ServerNotFoundError(ServeError):
    """There is no tritonserver: install the ``server`` extra or name one with TRITONSERVER."""


class BackendFolderError(ServeError):
    """The backend folder cannot be written: free the path that the message names."""


class ModelRepositoryError(ServeError):
    """The model repository cannot be served as it is: change what the message names."""


class PortInUseError(ServeError):
    """An address or port cannot be had: choose another one, or ask for free ports."""


class ServerStartError(ServeError):
    """tritonserver did not become ready: the message has the lines of its log that matter."""
