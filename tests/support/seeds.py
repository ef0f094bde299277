# SPDX-License-Identifier: Apache-2.0
"""The seed of the tests that send random requests: the same one at each run, so that a commit's
result does not depend on luck. CT2_TRITON_SEED gives another.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("CT2_TRITON_SEED", "2026"))
