# SPDX-License-Identifier: Apache-2.0
"""Long forms of the reliability tests, each against real servers of its own on loopback.

    python tests/reliability/chaos.py fuzz --long
    python tests/reliability/chaos.py storm --actions 20000
    python tests/reliability/chaos.py supersede --minutes 30
    python tests/reliability/chaos.py reload --rounds 200
    python tests/reliability/chaos.py overload --seconds 180
    python tests/reliability/chaos.py queue-policy
    python tests/reliability/chaos.py soak --seconds 900
    python tests/reliability/chaos.py live --minutes 30

`--decoding loop` and `--decoding calls` say how the served models decode greedy rows. Each command
prints what happened and ends with exit code 1 when something is wrong. Those that watch memory
write it to build/chaos/, as CSV, and as a plot where matplotlib is installed. Results are in
benchmarks/reliability.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ct2_triton.arguments import count, duration

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "tiny")]
OUTPUT = ROOT / "build" / "chaos"

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ct2_triton.serve import TritonServer

ROWS_PER_CASE = {False: 12, True: 60}


def fuzz(args: argparse.Namespace) -> bool:
    """Sends generated requests: each valid one must get its own answer, each other its error."""
    from reliability.fuzz import Fuzzer, make_request, served_counts, write_fuzz_repository
    from reliability.truths import make_cases
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    requests = args.requests or (200_000 if args.long else 5000)
    model = tiny_engine_model("nllb")
    cases = make_cases(model, ROWS_PER_CASE[args.long], seed=1)
    if args.only is not None:
        print(make_request(args.seed, args.only, cases))
    numbers = range(requests) if args.only is None else range(args.only, args.only + 1)
    print(f"fuzz: seed {args.seed}, {len(numbers)} requests", flush=True)
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write_fuzz_repository(Path(folder), model, args.decoding)
        server = stack.start(Path(folder))
        started = time.monotonic()
        report = Fuzzer(server, cases, args.seed).run(numbers, limit_s=args.limit_s)
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


def storm(args: argparse.Namespace) -> bool:
    """Clients that cancel, time out and disconnect, among clients that wait for their answers."""
    from reliability import observe, post_mortem
    from reliability.cancel_storm import run_storm
    from server import configs
    from server.helpers import Reference
    from support.repository import write_model
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    print(f"storm: seed {args.seed}, {args.actions} actions", flush=True)
    engine_model = tiny_engine_model("nllb")
    before: dict[str, float] = {}
    kept: list[Path] = []
    post_mortem.allow_core_files()
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        repository = Path(folder) / "repository"
        write_model(repository, "model", engine_model, configs.plain(decoding=args.decoding))
        os.chdir(folder)  # core files lie where a server was started

        def start() -> TritonServer:
            server = stack.start(repository)
            before.update(observe.resources(server))
            return server

        def keep(server: TritonServer) -> None:
            kept.extend(post_mortem.keep(server, OUTPUT, f"storm-{args.seed}-{len(kept)}"))

        reference = Reference(engine_model)
        storm = run_storm(start, "model", reference, args.seed, args.actions, keep)
        server, report = storm.server, storm.report
        print(f"servers that a defect of Triton ended: {storm.ended}")
        if report.wrong and server.is_alive():
            keep(server)
        print("\n".join([*(f"kept: {path}" for path in kept), *report.wrong[:20]]))
        if not server.is_alive():
            return False
        print(f"{sum(report.did.values())} actions: {dict(report.did)}")
        print(f"{report.requests} requests sent; calls ended: {dict(report.answered)}")
        counts = observe.settled(server, "model")
        print(f"server says: {counts}")
        time.sleep(5)  # connections that are gone are noticed late
        print(f"before: {before}")
        print(f"after: {observe.resources(server)}")
        status = server.stop()
        print(f"asked to end, the server ends with status {status}")
        if status != 0:
            keep(server)
            print("\n".join(f"kept: {path}" for path in kept))
    counted = report.answered["OK"] <= counts.success
    return not report.wrong and counted and counts.success + counts.failed <= report.requests


def supersede(args: argparse.Namespace) -> bool:
    """Short requests that supersede each other, over gRPC and HTTP, among others."""
    from reliability import observe
    from reliability.supersede_storm import SupersedeStorm
    from server import configs
    from server.helpers import Reference
    from support.repository import write_model
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    print(f"supersede: seed {args.seed}, {args.minutes:g} minutes", flush=True)
    engine_model = tiny_engine_model("nllb")
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write_model(Path(folder), "model", engine_model, configs.plain(decoding=args.decoding))
        server = stack.start(Path(folder))
        storm = SupersedeStorm(server, "model", Reference(engine_model), args.seed)
        storm.run(5)  # what the first requests cost counts as the server's own
        print(f"before: {observe.resources(server)}")
        report = storm.run(60 * args.minutes)
        print("\n".join(report.wrong[:20]))
        print(f"requests: {dict(sorted(report.answered.items()))}")
        alive = server.is_alive()
        print(f"after: {observe.resources(server) if alive else 'the server has ended'}")
    return alive and not report.wrong


def reload(args: argparse.Namespace) -> bool:
    """Loads, reloads and unloads a model under traffic, beside a model of two versions."""
    from reliability.reload_loop import ReloadLoop, large_models, write_reload_repository
    from support.servers import EXPLICIT, ServerStack

    engine_models = large_models()
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        environment = {"LD_PRELOAD": str(no_trim(Path(folder)))} if args.no_trim else {}
        repository = Path(folder) / "repository"
        write_reload_repository(repository, engine_models, args.decoding)
        server = stack.start(repository, server_arguments=EXPLICIT, environment=environment)
        started = time.monotonic()
        report = ReloadLoop(server, repository, engine_models).run(args.rounds)
        took = time.monotonic() - started
    print("\n".join(report.wrong[:20]))
    print(f"{report.rounds} loads in {took:.0f} s; answered: {dict(report.answered)}")
    print(f"wrong: {len(report.wrong)}")
    mib = report.resident_mib
    print(f"resident MiB: first {mib[0]:.0f}, last {mib[-1]:.0f}, most {max(mib):.0f}")
    print(f"growth after the first fifth: {report.growth_mib():.1f} MiB")
    print(f"threads: {min(report.threads)} to {max(report.threads)}, last {report.threads[-1]}")
    name = "reload-no-trim" if args.no_trim else "reload"
    write_series(name, "load", "resident MiB", list(enumerate(mib, start=1)))
    weights_mib = (engine_models[0] / "model.bin").stat().st_size / 2**20
    # What stays with the threads of past loads comes early and is then flat: it shows in the level.
    print(f"allowed: growth {weights_mib:.0f} MiB, {2 * weights_mib:.0f} above the first load")
    flat = report.growth_mib() < weights_mib and mib[-1] - mib[0] < 2 * weights_mib
    return not report.wrong and flat


def overload(args: argparse.Namespace) -> bool:
    """Ten times what the server can do: closed loop without, open loop with a queue limit."""
    from reliability import observe
    from reliability.overload import CLIENTS_FOR_ALL, LIMITED, UNLIMITED, Load, distinct_rows
    from reliability.overload import write_overload_repository as write
    from server.helpers import Reference
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    engine_model = tiny_engine_model("nllb")
    rows = distinct_rows(Reference(engine_model), 1200)
    good = True
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write(Path(folder), engine_model, args.decoding)
        server = stack.start(Path(folder))
        usual = Load(server, UNLIMITED, rows).closed_loop(CLIENTS_FOR_ALL, 15)
        print(f"capacity: {usual.rate:.0f} rows/s with {CLIENTS_FOR_ALL} clients", flush=True)
        closed = Load(server, UNLIMITED, rows).closed_loop(10 * CLIENTS_FOR_ALL, args.seconds)
        opened = Load(server, LIMITED, rows).open_loop(10 * usual.rate, args.seconds)
        after = Load(server, UNLIMITED, rows).closed_loop(CLIENTS_FOR_ALL, 15)
        for name, report in [("closed loop", closed), ("open loop", opened), ("after", after)]:
            print(f"{name}: offered {report.offered}, {dict(report.answered)}")
            print(f"  {report.rate:.0f} answers/s over {report.seconds:.0f} s")
            print(f"  most in flight {report.most_in_flight}, resident MiB {report.start_mib:.0f}")
            print(f"  at most {report.peak_mib:.0f}, at the end {report.end_mib:.0f}")
            print("\n".join(report.wrong[:5]))
            good &= not report.wrong and sum(report.answered.values()) == report.offered
        answered = {
            UNLIMITED: sum(one.answered["OK"] for one in (usual, closed, after)),
            LIMITED: opened.answered["OK"],
        }
        for model, count in answered.items():
            counts = observe.settled(server, model)
            print(f"{model}: {count} answers received; server says {counts}")
            good &= counts.success == count and counts.pending == 0
    return good


def queue_policy(args: argparse.Namespace) -> bool:
    """How often Triton's batcher sleeps when a queue policy is set, and what that costs."""
    from reliability import queue_policy as policy
    from server.helpers import Reference, sentences
    from support.repository import write_model
    from support.servers import ServerStack
    from support.tiny import tiny_engine_model

    engine_model = tiny_engine_model("nllb")
    rows = sentences(Reference(engine_model), 64)
    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        for name in policy.POLICIES:
            for setting in policy.SETTINGS:
                config = policy.model_config(name, setting, args.decoding)
                write_model(Path(folder), policy.model_name(name, setting), engine_model, config)
        server = stack.start(Path(folder))
        print("| queue policy | setting | runs that stalled | median s | worst s | requests/s |")
        print("|---|---|---|---|---|---|")
        for name in policy.POLICIES:
            for setting in policy.SETTINGS:
                model = policy.model_name(name, setting)
                report = policy.measure(server, model, rows, args.runs)
                times = f"{report.median_s:.2f} | {report.worst_s:.2f}"
                stalls = f"{report.stalls} of {report.runs}"
                rate = f"{report.requests_per_s:.0f}"
                print(f"| {name} | {setting} | {stalls} | {times} | {rate} |", flush=True)
    return True


def soak(args: argparse.Namespace) -> bool:
    """Requests of ever new shapes, and what stays resident."""
    from reliability.soak import Soak
    from server import configs
    from server.helpers import Reference
    from support.tiny import tiny_engine_model

    engine_model = tiny_engine_model("nllb")
    print(f"soak: seed {args.seed}, {args.seconds:g} s", flush=True)
    with one_model(engine_model, configs.full(decoding=args.decoding)) as server:
        report = Soak(server, "model", Reference(engine_model), args.seed).run(args.seconds)
    print("\n".join(report.wrong[:20]))
    print(f"{report.requests} requests, {report.rows} rows, {len(report.wrong)} wrong")
    print(f"resident MiB: fresh {report.fresh_mib:.0f}, loaded again {report.trimmed_mib:.0f}")
    print(f"after warm-up {report.warm_mib:.0f}, at the end {report.end_mib:.0f}")
    print(f"growth after warm-up: {100 * report.growth:.1f} % (allowed in minutes: 5 %)")
    write_series("soak", "seconds", "resident MiB", report.resident)
    return not report.wrong and report.growth < 0.05


def live(args: argparse.Namespace) -> bool:
    """Live captions for a long time: what ct2-live and a viewer's Chromium hold."""
    import asyncio

    from ct2_triton.prepare import PrepareOptions, prepare
    from reliability.live_soak import run_live_soak
    from support.servers import ServerStack

    print(f"live: seed {args.seed}, {args.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory() as name, ServerStack() as stack:
        folder, seconds = Path(name), 60 * args.minutes
        prepare(PrepareOptions("demo", folder / "repository"))
        server = stack.start(folder / "repository")
        event = run_live_soak(
            server, folder / "repository", args.seed, args.speakers, seconds, folder
        )
        report = asyncio.run(event)
    print("\n".join(report.wrong[:20]))
    print(f"{report.updates} updates, {report.spoken} segments, {report.messages} messages")
    print(f"{report.finals} finals in {seconds:.0f} s, {len(report.wrong)} wrong")
    flat = True
    for what in ("live_mib", "triton_mib", "heap_mib", "nodes"):
        first, warm, end = (report.at(what, *part) for part in ((0, 0.05), (0.3, 0.4), (0.9, 1)))
        growth = report.growth(what)
        print(f"{what}: first {first:.1f}, warm {warm:.1f}, end {end:.1f}, {growth:+.1%}")
        flat &= growth < 0.1
        points = [(one.seconds, float(getattr(one, what))) for one in report.samples]
        write_series(f"live-{what}", "seconds", what, points)
    return flat and not report.wrong


@contextmanager
def one_model(engine_model: Path, config: str) -> Iterator[TritonServer]:
    """A server with this model, called `model`, under explicit model control."""
    from support.repository import write_model
    from support.servers import EXPLICIT, ServerStack

    with tempfile.TemporaryDirectory() as folder, ServerStack() as stack:
        write_model(Path(folder), "model", engine_model, config)
        yield stack.start(Path(folder), server_arguments=EXPLICIT)


def no_trim(folder: Path) -> Path:
    """Builds a library that makes malloc_trim do nothing, to show what it is good for."""
    source, library = folder / "no_trim.c", folder / "no_trim.so"
    source.write_text("int malloc_trim(unsigned long pad) { (void)pad; return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def write_series(name: str, x: str, y: str, points: Sequence[tuple[float, float]]) -> None:
    """Writes a measured curve, and plots it where that is possible."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with (OUTPUT / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([x, y])
        writer.writerows((f"{a:g}", f"{b:.1f}") for a, b in points)
    print(f"written: {(OUTPUT / name).relative_to(ROOT)}.csv")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes: Any = figure.subplots()
    axes.plot([a for a, _ in points], [b for _, b in points], linewidth=1)
    axes.set(xlabel=x, ylabel=y, ylim=(0, None))
    figure.savefig(OUTPUT / f"{name}.svg")
    print(f"written: {(OUTPUT / name).relative_to(ROOT)}.svg")


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], bool]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        any_seed = random.SystemRandom().randrange(10**6)
        added.add_argument("--seed", type=int, default=any_seed, help="of what is random")
        added.add_argument("--decoding", default="auto", help="auto, loop or calls (%(default)s)")
        return added

    fuzzer = command("fuzz", fuzz)
    fuzzer.add_argument("--long", action="store_true", help="200000 requests, more sentences")
    fuzzer.add_argument("--requests", type=count, help="how many")
    fuzzer.add_argument("--only", type=int, help="print and send the request of this number")
    fuzzer.add_argument("--limit-s", type=duration, default=1200.0, help="stop then (%(default)s)")
    command("storm", storm).add_argument("--actions", type=count, default=20_000)
    command("supersede", supersede).add_argument("--minutes", type=duration, default=30.0)
    reloader = command("reload", reload)
    reloader.add_argument("--rounds", type=count, default=200)
    reloader.add_argument("--no-trim", action="store_true", help="without malloc_trim, to compare")
    command("overload", overload).add_argument("--seconds", type=duration, default=180.0)
    command("queue-policy", queue_policy).add_argument("--runs", type=count, default=12)
    command("soak", soak).add_argument("--seconds", type=duration, default=900.0)
    talk = command("live", live)
    talk.add_argument("--minutes", type=duration, default=30.0)
    talk.add_argument("--speakers", type=count, default=4)
    args = parser.parse_args()
    try:
        return 0 if args.run(args) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
