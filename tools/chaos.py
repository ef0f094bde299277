# SPDX-License-Identifier: Apache-2.0
"""Long forms of the reliability tests, each against real servers of its own on loopback.

    python tools/chaos.py fuzz --long
    python tools/chaos.py fuzz --seed 7 --requests 5000
    python tools/chaos.py fuzz --seed 7 --only 4711

Exit code 1 when something is wrong. docs/reliability.md has the results.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

ROWS_PER_CASE = {False: 12, True: 60}


def fuzz(args: argparse.Namespace) -> bool:
    """Sends generated requests. Says whether all answers were right."""
    from reliability.fuzz import Fuzzer, make_request, served_counts, write_fuzz_repository
    from reliability.truths import make_cases
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**6)
    requests = args.requests or (200_000 if args.long else 5000)
    model = tiny_engine_model("nllb")
    cases = make_cases(model, ROWS_PER_CASE[args.long], seed=1)
    if args.only is not None:
        print(make_request(seed, args.only, cases))
    numbers = range(requests) if args.only is None else range(args.only, args.only + 1)
    print(f"fuzz: seed {seed}, {len(numbers)} requests", flush=True)
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write_fuzz_repository(Path(folder), model)
        server = stack.start(Path(folder))
        started = time.monotonic()
        report = Fuzzer(server, cases, seed).run(numbers, limit_s=args.limit_s)
        took = time.monotonic() - started
        time.sleep(1)  # the server counts after it has answered
        counts = served_counts(server)
    print("\n".join(report.complaints))
    kinds = sorted({kind for kind, _ in report.counts})
    for kind in kinds:
        print(f"  {report.of_kind(kind):8d}  {kind}")
    print(f"{report.sent()} requests in {took:.0f} s, {report.wrong} wrong")
    print(f"answered OK: {dict(sorted(report.accepted.items()))}")
    print(f"server says: {dict(sorted(counts.items()))}")
    counted = all(counts[model] == count for model, count in report.accepted.items())
    return report.wrong == 0 and counted and report.sent() == len(numbers)


COMMANDS = {"fuzz": fuzz}


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--long", action="store_true", help="the form docs/reliability.md reports")
    parser.add_argument("--seed", type=int, help="of the generated requests (default: any)")
    parser.add_argument("--requests", type=int, help="how many")
    parser.add_argument("--only", type=int, help="fuzz: print and send the request of this number")
    parser.add_argument("--limit-s", type=float, default=1200.0, help="stop then (%(default)s)")
    args = parser.parse_args()
    return 0 if COMMANDS[args.command](args) else 1


if __name__ == "__main__":
    raise SystemExit(main())
