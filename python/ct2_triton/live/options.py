# SPDX-License-Identifier: Apache-2.0
"""How a live translation behaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ct2_triton.errors import InvalidCallError
from ct2_triton.live.policies import Agreement, Append, FinalOnly

if TYPE_CHECKING:
    from collections.abc import Callable

    from ct2_triton.live.policies import Decode, Policy

Mode = Literal["final", "steady", "append"]
SourceText = Literal["agreement", "newest"]
STEADY_BIAS = 0.2  # as in arXiv 2509.21740; docs/live.md has what it does here
MODES: dict[str, Callable[[Decode, LiveOptions], Policy]] = {
    "final": lambda *_: FinalOnly(),
    "steady": lambda _, options: Agreement(bias=STEADY_BIAS, tail_mask=options.mask_words),
    "append": lambda decode, _: Append(decode),
}


@dataclass(frozen=True)
class LiveOptions:
    """How a live translation behaves.

    Attributes:
        mode: "final": whole segments only. "steady": words are committed when consecutive
            translations agree on them, and some are shown before; the final may replace them.
            "append": viewers see additions only.
        min_words: New words that an interim translation waits for, and the least of the first one.
        min_interval_ms: Least time between two interim translations of a segment and language.
        mask_words: Mode "steady" shows words that are not committed as a tail, without this many
            words at the end of the newest translation. A large number hides the tail.
        source: The text to translate if the recognizer names no stable part: "agreement", on which
            two consecutive updates agree, or "newest", all of it.
        cut_sentences: Running text is cut at the ends of sentences.
        max_words: Words after which it is cut if no sentence ends.
        max_segments: Segments that may be open (begun and not final) at a time.
        max_waiting_finals: Final segments that may wait for their translation or their reader;
            then `push` waits.
        max_chars: Longest text of an update after the last cut, in characters.
        outage_s: How long to keep sending a final to an unreachable server, in seconds.
        drafts: Each greedy request carries the previous translation, which saves decode steps.
            Only mode "steady" biases translations towards it. Disable it if the model's own
            settings sample.
        quality: The server judges each translation. A flagged interim translation commits nothing,
            a flagged final is marked, and a sentence that the recognizer repeats more than twice in
            a row is not translated again.
        policy: Makes captions from interim translations in place of the mode: a function that is
            given what makes text of tokens, and makes a `Policy`.
    """

    mode: Mode = "steady"
    min_words: int = 1
    min_interval_ms: float = 300.0
    mask_words: int = 6
    source: SourceText = "agreement"
    cut_sentences: bool = True
    max_words: int = 60
    max_segments: int = 64
    max_waiting_finals: int = 64
    max_chars: int = 4000
    outage_s: float = 3600.0
    drafts: bool = True
    quality: bool = False
    policy: Callable[[Decode], Policy] | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidCallError: One is not allowed.
        """
        for name, allowed in (("mode", tuple(MODES)), ("source", ("agreement", "newest"))):
            if getattr(self, name) not in allowed:
                raise InvalidCallError(
                    f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(allowed)}"
                )
        for name, least in (
            ("min_words", 1),
            ("min_interval_ms", 0),
            ("mask_words", 0),
            ("max_words", 2),
            ("max_segments", 1),
            ("max_waiting_finals", 1),
            ("max_chars", 1),
            ("outage_s", 0),
        ):
            if not getattr(self, name) >= least:
                raise InvalidCallError(
                    f"{name} is {getattr(self, name)}; it must be {least} or more"
                )

    def make_policy(self, decode: Decode) -> Policy:
        """Make the policy of one segment and language."""
        return self.policy(decode) if self.policy else MODES[self.mode](decode, self)
