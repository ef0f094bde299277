# SPDX-License-Identifier: Apache-2.0
"""Run a tritonserver with the CTranslate2 backend, for ct2-serve, tests and benchmarks."""

from ct2_triton.serve.options import Ports, ServerOptions
from ct2_triton.serve.server import TritonServer

__all__ = ["Ports", "ServerOptions", "TritonServer"]
