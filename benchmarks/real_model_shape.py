# SPDX-License-Identifier: Apache-2.0
"""Run real_model.py on a checkpoint with the sizes of a released model, offered by a local hub.

The checkpoint has random weights that copy the source (`ct2_triton.bench.shapes`), so its times
and sizes are those of the released model, and its scores mean nothing. Options that are not listed
here go to real_model.py:

    python benchmarks/real_model_shape.py nllb-600m --from eng_Latn --to deu_Latn --minutes 3
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from ct2_triton.bench.shapes import SHAPES, write_shape
from support.hub_server import running_hub


def main() -> int:
    """Make the checkpoint, offer it, and run the script; its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shape", choices=SHAPES, help="sizes of the model")
    options, others = parser.parse_known_args()
    script = Path(__file__).with_name("real_model.py")
    hub_id = f"random/{options.shape}"
    with tempfile.TemporaryDirectory() as scratch, running_hub() as hub:
        folder = Path(scratch)
        hub.add(hub_id, write_shape(options.shape, folder))
        environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "cache")}
        return subprocess.run(
            [sys.executable, script, hub_id, *others],
            env={**os.environ, **environment},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
