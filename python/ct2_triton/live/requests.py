# SPDX-License-Identifier: Apache-2.0
"""The requests of a live translation: keys, drafts, and terms to keep."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ct2_triton.client.tasks import cancel_all
from ct2_triton.errors import RequestRejectedError
from ct2_triton.terms.translation import keep_terms
from ct2_triton.words import word_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ct2_triton.client.calls import OptionValue
    from ct2_triton.client.client import TranslationClient
    from ct2_triton.client.results import Translation
    from ct2_triton.live.options import LiveOptions
    from ct2_triton.live.policies import Draft
    from ct2_triton.live.track import LiveCounts, Translate
    from ct2_triton.terms.finding import Terms

_LOG = logging.getLogger(__name__)
_GRACE_S = 5.0
_NOT_GREEDY = {"num_hypotheses", "sampling_topk", "prefix_bias_beta", "return_alternatives"}


@dataclass(eq=False)
class LiveRequests:
    """Send the requests of one live translation.

    Attributes:
        client: Sends them.
        source: Language of the text.
        key: Start of the keys by which newer requests supersede older ones.
        options: How the translation behaves.
        decoding: Decoding options of the finals.
        terms: Terms to keep, by language code.
        counts: Where tokens are counted.
    """

    client: TranslationClient
    source: str | None
    key: str
    options: LiveOptions
    decoding: Mapping[str, OptionValue]
    terms: Mapping[str | None, Terms]
    counts: LiveCounts
    _running: set[asyncio.Task[Translation]] = field(default_factory=set, init=False)
    _takes_bias: bool = field(default=True, init=False)  # until a bias is refused

    async def close(self) -> None:
        """Wait some seconds for requests in progress, because cancelling could crash the server."""
        if self._running:
            await asyncio.wait(self._running, timeout=_GRACE_S)
            await cancel_all(list(self._running))

    def into(self, segment: str, target: str | None, *, attends: bool) -> Translate:
        """Return a function that translates a segment; `attends`: with alignments."""
        latest: dict[bool, tuple[Any, ...]] = {}  # for the text as it is, and with placeholders
        terms = self.terms.get(target)

        async def translate(text: str, draft: Draft, is_final: bool) -> Translation:
            found = terms.find(text) if terms else None
            plain = text if found is None else found.text

            async def ask(asked: str, **_: Any) -> Translation:  # noqa: ANN401
                options = self._settings(is_final=is_final, attends=attends)
                is_plain = asked == plain
                known = latest.get(is_plain, ())
                biased = draft.rest if is_plain or not draft.bias or draft.start else known
                if biased and self._can_bias(options):
                    options |= {"draft": self._given(draft.start, biased), "draft_bias": draft.bias}
                elif self.options.drafts and (expected := _expected(known, draft.start, options)):
                    options["draft"] = self._given(draft.start, expected)
                answer = await self._send_biased(
                    segment, asked, target, draft, options, is_final=is_final
                )
                latest[is_plain] = self.tokens_of(answer)
                self._count(answer, is_final=is_final)
                return answer

            if found is None:
                return await ask(text)
            [kept] = await keep_terms(self.client, found, ask, target)
            if is_final and kept.failed:
                _LOG.warning("%s, %s: lost %s", segment, target, ", ".join(map(repr, kept.lost)))
            assert kept.translation is not None  # noqa: S101 - `keep_terms` has one of each
            return kept.translation

        return translate

    def tokens_of(self, answer: Translation) -> tuple[Any, ...]:
        """Return the token IDs of an answer, or its words if the model takes text.

        An answer with restored terms has no IDs.
        """
        return word_tokens(answer.text) if self.client.takes_text else answer.ids

    def _settings(self, *, is_final: bool, attends: bool) -> dict[str, Any]:
        options: dict[str, Any] = dict(self.decoding)
        if not is_final:
            options["beam_size"] = 1
            if attends and self.client.gives_alignments():
                options["return_alignments"] = True
            if options.get("on_doubt") == "retry":
                options["on_doubt"] = "flag"  # unfinished text is often flagged
        return options

    async def _send_biased(
        self,
        segment: str,
        text: str,
        target: str | None,
        draft: Draft,
        options: dict[str, Any],
        *,
        is_final: bool,
    ) -> Translation:
        """Send a request, and an interim again without a bias if the model refuses the bias."""
        try:
            return await self._send(segment, text, target, draft, options)
        except RequestRejectedError:
            if is_final or "draft_bias" not in options:
                raise
        unbiased = {
            name: value for name, value in options.items() if name not in ("draft", "draft_bias")
        }
        answer = await self._send(segment, text, target, draft, unbiased)
        self._takes_bias = False
        return answer

    async def _send(
        self, segment: str, text: str, target: str | None, draft: Draft, options: dict[str, Any]
    ) -> Translation:
        prefix = self._given(draft.start)
        if prefix and self.client.takes_text:
            options = {**options, "split": "none"}  # else only the first sentence begins with it
        call = self.client.translate(
            text,
            source=self.source,
            targets=target,
            supersede=f"{self.key}/{segment}",
            session=self.key,  # all requests of a talk go to one version
            prefix=prefix,
            **options,
        )
        request: asyncio.Task[Translation] = asyncio.create_task(call)
        self._running.add(request)
        request.add_done_callback(self._forget)
        # A waiting task may be cancelled; the request ends by itself, or by its key.
        return await asyncio.shield(request)

    def _forget(self, request: asyncio.Task[Translation]) -> None:
        self._running.discard(request)
        if not request.cancelled():
            request.exception()  # nobody else asks for it once the waiting task is cancelled

    def _given(self, start: Sequence[Any], rest: Sequence[Any] = ()) -> str | tuple[int, ...]:
        """Return tokens as the client takes them: text with its start, or IDs after the start.

        Empty for tokens of another kind (IDs, words), left from a model that was replaced.
        """
        tokens, takes_text = (*start, *rest), bool(self.client.takes_text)
        if any(isinstance(token, str) is not takes_text for token in tokens):
            return ()
        return "".join(tokens).lstrip() if takes_text else tuple(rest or start)

    def _can_bias(self, options: Mapping[str, object]) -> bool:
        takes_drafts = self.options.drafts and self._takes_bias and self.client.takes_drafts()
        return takes_drafts and _NOT_GREEDY.isdisjoint(options)

    def _count(self, answer: Translation, *, is_final: bool) -> None:
        kept = answer.draft_tokens_kept or 0
        self.counts.draft_tokens_kept += kept
        if not is_final:
            self.counts.interim_tokens += len(answer.ids)
            self.counts.interim_steps += len(answer.ids) - kept


def _expected(
    latest: tuple[Any, ...], forced: Sequence[Any], options: Mapping[str, object]
) -> tuple[Any, ...]:
    """Return the last answer's tokens after the forced ones, if the search takes a draft."""
    if options.get("beam_size") != 1 or not _NOT_GREEDY.isdisjoint(options):
        return ()
    return latest[len(forced) :] if latest[: len(forced)] == tuple(forced) else ()
