# SPDX-License-Identifier: Apache-2.0
"""The record of a run: every sample, the settings, the machine, and figures of the samples."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import ct2_triton
from ct2_triton.bench.contenders.base import ServerCounts
from ct2_triton.bench.errors import BenchError
from ct2_triton.serve.machine import count_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMAT = 1


class Sample(NamedTuple):
    """One row translated.

    Attributes:
        sentence: Index of its sentence among those sent, from 0.
        row: Index of the language or model in that sentence.
        due_s: When it was due, in seconds from the start; in a closed loop, when it was sent.
        done_s: When its answer arrived; None for rows of one call for a whole list.
        source_tokens: Length of its INPUT_IDS.
        generated_tokens: Tokens generated: OUTPUT_IDS without the prefix; the end token is not
            counted.
    """

    sentence: int
    row: int
    due_s: float
    done_s: float | None
    source_tokens: int
    generated_tokens: int


@dataclass(frozen=True)
class Round:
    """One contender in one scenario, once.

    Attributes:
        contender: Its name.
        number: Number of the round, from 0; each round measures all contenders of a scenario.
        wall_s: Seconds from the first row sent to the last answer.
        words: Words of the sentences, counted once for each row.
        samples: Every row.
        cpu_s: CPU time of the contender's processes.
        client_cpu_s: CPU time of the load generator, which runs on the same cores.
        client_busy: Share of a core that its busiest process used while it sent.
        other_cpu_s: CPU time of everything else on the machine, which disturbs the measurement.
        rss_bytes: Resident memory of the contender's processes at the end; shared pages count for
            each process.
        pss_bytes: Resident memory at the end; shared pages count once.
        counts: Counters of its server; None if it has none.
        compared_rows: Rows compared with those of `ScenarioRecord.answers_of`.
        different_rows: Those of them that differ.
    """

    contender: str
    number: int
    wall_s: float
    words: int
    samples: tuple[Sample, ...]
    cpu_s: float
    client_cpu_s: float
    other_cpu_s: float
    rss_bytes: int
    pss_bytes: int
    counts: ServerCounts | None
    compared_rows: int = 0
    different_rows: int = 0
    client_busy: float = 0.0


@dataclass(frozen=True)
class ScenarioRecord:
    """All rounds of one scenario.

    Attributes:
        name: Name on the command line, such as `single:48`.
        description: What happens, in words.
        sentences: Number of distinct sentences.
        answers_of: The reference contender by precision: its answers in round 0 are compared with.
        rounds: The rounds, in the order in which they ran.
    """

    name: str
    description: str
    sentences: int
    answers_of: dict[str, str]
    rounds: tuple[Round, ...]

    def contenders(self) -> list[str]:
        """Return the contenders that took part, in order."""
        return list(dict.fromkeys(round_.contender for round_ in self.rounds))

    def of(self, contender: str) -> list[Round]:
        """Return the rounds of one contender, by number."""
        return [round_ for round_ in self.rounds if round_.contender == contender]


@dataclass(frozen=True)
class Run:
    """A whole comparison.

    Attributes:
        started: Date and time, with its zone.
        baseline: The contender that ratios are taken against.
        machine: Processor, cores, memory, load, GPU.
        versions: Versions of the packages.
        setup: Model, beam, limits.
        workload: Sentences, languages, lengths.
        contenders: Settings of each, by name.
        scenarios: What was measured.
    """

    started: str
    baseline: str
    machine: dict[str, str]
    versions: dict[str, str]
    setup: dict[str, str]
    workload: dict[str, str]
    contenders: dict[str, dict[str, str]]
    scenarios: tuple[ScenarioRecord, ...]

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        content = {"format": FORMAT, **asdict(self)}
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a run."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise BenchError(f"{path} is not of format {FORMAT}; run ct2-bench again")
            scenarios = tuple(_scenario(entry) for entry in content.pop("scenarios"))
            return cls(**content, scenarios=scenarios)
        except OSError as error:
            raise BenchError(f"cannot read {path}: {error.strerror}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BenchError(f"{path} is not a file that ct2-bench wrote ({error!r})") from error


def _scenario(entry: dict[str, Any]) -> ScenarioRecord:
    record = ScenarioRecord(**entry)
    return replace(record, rounds=tuple(_round(round_) for round_ in entry["rounds"]))


def _round(entry: dict[str, Any]) -> Round:
    counts = entry.pop("counts")
    samples = tuple(Sample(*sample) for sample in entry.pop("samples"))
    return Round(**entry, samples=samples, counts=ServerCounts(**counts) if counts else None)


_PACKAGES = ("ctranslate2", "tritonclient", "nvidia-pytriton", "transformers", "torch", "fastapi")


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory, load and system."""
    allowed, present = len(os.sched_getaffinity(0)), os.cpu_count()
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": f"{allowed}" if allowed == present else f"{allowed} of {present}",
        "memory": _field("/proc/meminfo", "MemTotal"),
        "GPUs": str(count_gpus()),
        "system": platform.platform(),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the packages that contenders may use."""
    versions = {"ct2-triton": ct2_triton.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


_MIB = 2**20


@dataclass(frozen=True)
class Spread:
    """One figure over the rounds of a run."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median, minimum and maximum of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least a share of values do not exceed (nearest rank)."""
    return float(np.percentile(list(values), 100 * share, method="inverted_cdf"))


def latencies_s(samples: Iterable[Sample]) -> list[float]:
    """Return the latency of each row that was timed individually, in seconds."""
    return [sample.done_s - sample.due_s for sample in samples if sample.done_s is not None]


def last_of_sentence_s(samples: Iterable[Sample]) -> list[float]:
    """Give, for each sentence, the seconds until its last language was there."""
    due: dict[int, float] = {}
    done: defaultdict[int, float] = defaultdict(float)
    for sample in samples:
        if sample.done_s is not None:
            due[sample.sentence] = sample.due_s
            done[sample.sentence] = max(done[sample.sentence], sample.done_s)
    return [done[sentence] - due[sentence] for sentence in due]


def figures(round_: Round) -> dict[str, float]:
    """Compute the figures of one round; benchmarks/README.md says what each means."""
    samples = round_.samples
    source_tokens = sum(sample.source_tokens for sample in samples)
    generated_tokens = sum(sample.generated_tokens for sample in samples)
    values = {
        "sentences/s": len({sample.sentence for sample in samples}) / round_.wall_s,
        "source tokens/s": source_tokens / round_.wall_s,
        "generated tokens/s": generated_tokens / round_.wall_s,
        "words/s": round_.words / round_.wall_s,
        "CPU s/1000 source tokens": 1000 * round_.cpu_s / source_tokens,
        "client CPU s/1000 source tokens": 1000 * round_.client_cpu_s / source_tokens,
        "client busy": round_.client_busy,
        "other CPU": round_.other_cpu_s / round_.wall_s,
        "RSS MiB": round_.rss_bytes / _MIB,
        "PSS MiB": round_.pss_bytes / _MIB,
    }
    return values | _latencies(samples) | _server_figures(round_)


def over_rounds(rounds: Sequence[Round]) -> dict[str, Spread]:
    """Return each figure's median, minimum and maximum over rounds of one contender."""
    each = [figures(round_) for round_ in rounds]
    return {name: Spread.of([values[name] for values in each]) for name in each[0]}


def ratios(scenario: ScenarioRecord, contender: str, baseline: str, figure: str) -> Spread | None:
    """Divide a figure by the baseline's, round by round; None if either is missing."""
    upper = [figures(round_).get(figure) for round_ in scenario.of(contender)]
    lower = [figures(round_).get(figure) for round_ in scenario.of(baseline)]
    pairs = [(a, b) for a, b in zip(upper, lower, strict=False) if a is not None and b]
    return Spread.of([a / b for a, b in pairs]) if pairs else None


def _latencies(samples: Sequence[Sample]) -> dict[str, float]:
    """Return latencies in milliseconds; empty if rows were not timed individually."""
    values: dict[str, float] = {}
    if rows := latencies_s(samples):
        values |= {f"p{p} ms": 1000 * percentile(rows, p / 100) for p in (50, 95, 99)}
    if rows and any(sample.row for sample in samples):
        last = last_of_sentence_s(samples)
        values |= {f"last p{p} ms": 1000 * percentile(last, p / 100) for p in (50, 95, 99)}
    return values


def _server_figures(round_: Round) -> dict[str, float]:
    counts = round_.counts
    if counts is None or not counts.batches or not counts.requests:
        return {}
    values = {
        "mean batch": counts.rows / counts.batches,
        "queue ms": counts.queue_ns / counts.requests / 1e6,
        "compute ms": counts.compute_ns / counts.requests / 1e6,
    }
    if counts.first_tokens:
        values["first token ms"] = 1000 * counts.first_token_s / counts.first_tokens
    if counts.gaps:
        values["longest gap ms"] = 1000 * counts.gap_s / counts.gaps
    return values
