# SPDX-License-Identifier: Apache-2.0
"""Figures of a replayed event: flicker, lag, times, requests, and what the finals are worth."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import live_delays
from ct2_triton.bench.record import percentile
from ct2_triton.bench.report import Table
from ct2_triton.words import common_words, split_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ct2_triton.live import SegmentUpdate
    from live_replay import Replay, Seen

_LISTED = 20  # finals that differ
_EXCERPT = 40  # characters of each
FIGURES = (
    "NE",
    "LAAL settled",
    "AL settled",
    "LAAL shown",
    "AL shown",
    "LAAL settled s",
    "p50 ms",
    "p95 ms",
    "final p95 ms",
    "calls/word",
    "tokens/interim",
    "steps/interim",
    "superseded %",
    "chrF shown",
    "finals equal %",
    "flagged %",
)


@dataclass(frozen=True)
class Line:
    """One segment in one language: what was shown of it, when, and what it should become.

    Attributes:
        segment: The segment.
        target: The language.
        seen: Its captions.
        updates: Its updates.
        reference: The offline translation of its final text.
    """

    segment: str
    target: str | None
    seen: Sequence[Seen]
    updates: Sequence[SegmentUpdate]
    reference: str

    @property
    def shown(self) -> list[list[str]]:
        """The words shown, one caption after the other."""
        return [_words(seen.caption.shown) for seen in self.seen]

    @property
    def source_words(self) -> int:
        """Words of the final text."""
        return len(_words(self.updates[-1].text))

    @property
    def seconds(self) -> float:
        """From the first update to the final."""
        return _time(self.updates[-1]) - _time(self.updates[0])

    def said(self) -> list[float]:
        """Return, for each caption, the number of source words spoken when it was shown."""
        times = [_time(update) for update in self.updates]
        counts = [0, *(len(_words(update.text)) for update in self.updates)]
        return [float(counts[bisect_right(times, seen.at_s)]) for seen in self.seen]

    def settled_s(self) -> list[float]:
        """Give, for each word of the last caption, when it was settled, since the first update."""
        since_start = [seen.at_s - _time(self.updates[0]) for seen in self.seen]
        return live_delays.settled_delays(self.shown, since_start)

    def lag(self, delays: Sequence[float]) -> float:
        """Compute LAAL, in source words."""
        return live_delays.length_adaptive_lagging(
            delays, self.source_words, len(_words(self.reference))
        )


def lines_of(replay: Replay, offline: Mapping[tuple[str, str | None], str]) -> list[Line]:
    """Sort the captions of an event by segment and language.

    Args:
        replay: The event.
        offline: The translation of each final text and language.
    """
    seen: dict[tuple[str, str | None], list[Seen]] = {}
    for one in replay.seen:
        seen.setdefault((one.caption.segment, one.caption.target), []).append(one)
    return [
        Line(segment, target, captions, replay.updates[segment],
             offline[replay.updates[segment][-1].text, target])
        for (segment, target), captions in seen.items()
    ]  # fmt: skip


def figures(replay: Replay, lines: Sequence[Line]) -> dict[str, float]:
    """Compute the figures of an event, by the names of `FIGURES`.

    Args:
        replay: The event.
        lines: Its segments and languages, at least one.

    Returns:
        NE over all words of the event; lags as means over segments and languages, in source words.
    """
    requests = sum(counts.requests for counts in replay.counts)
    superseded = sum(counts.superseded for counts in replay.counts)
    interims = max(1, requests - sum(counts.finals for counts in replay.counts))
    partial = [1000 * (s.at_s - (s.caption.time or 0)) for s in replay.seen if not s.caption.final]
    final = [1000 * (s.at_s - (s.caption.time or 0)) for s in replay.seen if s.caption.final]
    settled = [live_delays.settled_delays(line.shown, line.said()) for line in lines]
    settled_s = [line.settled_s() for line in lines]
    both = list(zip(lines, settled, settled_s, strict=True))
    shown = [(line, live_delays.first_delays(line.shown, line.said())) for line in lines]
    values = (
        sum(live_delays.erased_words(line.shown) for line in lines)
        / max(1, sum(len(line.shown[-1]) for line in lines)),
        fmean(line.lag(words) for line, words, _ in both),
        fmean(
            live_delays.average_lagging(words, line.source_words, len(_words(line.reference)))
            for line, words, _ in both
        ),
        fmean(line.lag(words) for line, words in shown),
        fmean(
            live_delays.average_lagging(words, line.source_words, len(_words(line.reference)))
            for line, words in shown
        ),
        fmean(
            live_delays.length_adaptive_lagging(s, line.seconds, len(_words(line.reference)))
            for line, _, s in both
        ),
        percentile(partial or final, 0.5),
        percentile(partial or final, 0.95),
        percentile(final, 0.95),
        requests / sum(line.source_words for line in lines),
        sum(counts.interim_tokens for counts in replay.counts) / interims,
        sum(counts.interim_steps for counts in replay.counts) / interims,
        100 * superseded / requests,
        _chrf([line.seen[-1].caption.shown for line in lines], [line.reference for line in lines]),
        100 * fmean(line.seen[-1].caption.transcript == line.reference for line in lines),
        100 * sum(counts.flagged_interims for counts in replay.counts) / interims,
    )
    return dict(zip(FIGURES, values, strict=True))


def table(rows: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """Make the table of several policies."""
    return Table(
        title,
        ["", *rows],
        [[name, *(_number(row[name]) for row in rows.values())] for name in FIGURES],
    )


def differing_table(lines: Mapping[str, Sequence[Line]]) -> list[Table]:
    """List the finals that are not the offline translation, from the first word that differs.

    Args:
        lines: Of each policy.

    Returns:
        A table of the first ones; nothing where all are equal.
    """
    rows = [
        [name, line.segment, line.target or "", *_from_difference(final, line.reference)]
        for name, its_lines in lines.items()
        for line in its_lines
        if (final := line.seen[-1].caption.transcript) != line.reference
    ]
    if not rows:
        return []
    title = f"finals that are not the offline translation: {len(rows)}"
    return [Table(title, ["", "segment", "to", "final", "offline"], rows[:_LISTED])]


def update_lines(replay: Replay) -> list[dict[str, Any]]:
    """Return one record for each caption: what updates.jsonl holds."""
    return [
        {
            "policy": replay.name,
            "segment": seen.caption.segment,
            "target": seen.caption.target,
            "t_in": seen.caption.time,
            "t_out": round(seen.at_s, 4),
            "source": seen.caption.source,
            "final": seen.caption.final,
            "shown": seen.caption.shown,
            "committed": seen.caption.committed,
        }
        for seen in replay.seen
    ]


def simuleval_lines(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the records of SimulEval's instances.log: delays in words, elapsed in milliseconds."""
    return [
        {
            "index": index,
            "prediction": " ".join(line.shown[-1]),
            "delays": live_delays.settled_delays(line.shown, line.said()),
            "elapsed": [round(1000 * s, 1) for s in line.settled_s()],
            "prediction_length": len(line.shown[-1]),
            "reference": line.reference,
            "source": line.updates[-1].text,
            "source_length": line.source_words,
        }
        for index, line in enumerate(lines)
    ]


def write_simuleval(folder: Path, lines: Sequence[Line]) -> None:
    """Write a folder that `simuleval --score-only --output FOLDER` reads.

    Args:
        folder: Made if it is missing.
        lines: Of one policy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json_lines(simuleval_lines(lines))
    (folder / "instances.log").write_text(text, encoding="utf-8")
    (folder / "config.yaml").write_text("source_type: text\ntarget_type: text\n", encoding="utf-8")


def json_lines(records: Sequence[Mapping[str, Any]]) -> str:
    """Write records, one a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _chrf(texts: list[str], references: list[str]) -> float:
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().corpus_score(texts, [references]).score)


def _from_difference(final: str | None, reference: str) -> tuple[str, str]:
    """Return some words of a final and of its reference, from the first that differs."""
    if final is None:
        return "(none)", reference[:_EXCERPT]
    words, others = split_words(final), split_words(reference)
    same = common_words(words, others)
    return "".join(words[same:])[:_EXCERPT], "".join(others[same:])[:_EXCERPT]


def _words(text: str) -> list[str]:
    return [word.rstrip() for word in split_words(text)]


def _time(update: SegmentUpdate) -> float:
    return update.time or 0.0


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
