# SPDX-License-Identifier: Apache-2.0
"""Compare a client's tokenizer with that of `transformers`: text to IDs, and IDs to text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ct2_triton.client.pieces import read_pieces
from ct2_triton.errors import VerificationError
from ct2_triton.prepare.tokenizers import load_tokenizer
from ct2_triton.prepare.verification.probes import Probe, added_token_texts, choose_probes
from ct2_triton.prepare.verification.reference import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ct2_triton.prepare.verification.subject import Subject


_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


class TextProof:
    """Both tokenizers of one prepared model."""

    def __init__(self, subject: Subject) -> None:
        """Read both from the files for clients."""
        self._subject = subject
        self._rules = subject.rules
        self._pieces = read_pieces(subject.stored.tokenizer_folder, subject.rules)
        # Tokenizes texts as translations, if their IDs differ from those of sources.
        self._answers = (
            self._pieces
            if subject.vocabulary.answers is None
            else read_pieces(subject.stored.tokenizer_folder, subject.rules, of_targets=True)
        )
        self._reference = load_tokenizer(subject.stored.tokenizer_folder)
        self.decoded_rows = 0

    def probe_rows(self) -> list[Row]:
        """Build the rows of the probes like a client, without those too long for the model."""
        rows = [self._row(probe) for probe in choose_probes(self._rules)]
        limit = self._rules.max_source_tokens
        return [row for row in rows if limit is None or len(row.input_ids) <= limit]

    def check_added_tokens(self) -> None:
        """Encode and decode every added token, alone and within a sentence."""
        some = choose_probes(self._rules)[0]
        for text in added_token_texts(self._rules):
            self._row(Probe(text, some.source, some.target))

    def check_decoding(self, ids: Sequence[int]) -> None:
        """Compare the text of IDs in both tokenizers."""
        known = [i for i in ids if i < self._rules.tokenizer_size]
        found = self._pieces.decode(known)
        wanted = self._reference.decode(
            known, skip_special_tokens=True, clean_up_tokenization_spaces=False
        ).strip()
        if found not in (wanted, _with_characters(wanted)):
            raise VerificationError(
                f"a client would read {found!r} in {known}, and transformers reads {wanted!r}"
            )
        self.decoded_rows += 1

    def _row(self, probe: Probe) -> Row:
        pieces = self._pieces.encode(probe.text)
        ids = self._rules.input_ids(pieces, probe.source, probe.target)
        wanted = self._subject.family.reference_ids(
            self._reference,
            self._subject.checkpoint.config,
            probe.text,
            probe.source,
            probe.target,
        )
        if ids != wanted:
            raise VerificationError(
                f"a client would send {ids} for {probe}, and transformers gives {wanted}"
            )
        self.check_decoding(self._answers.encode(probe.text))
        prefix = self._rules.target_prefix(probe.target)
        return Row(probe, ids, prefix, self._rules.prefix_length(probe.target))


def _with_characters(text: str) -> str:
    """Decode bytes that some tokenizer.json files leave as `<0xE2><0x98>`."""

    def characters(match: re.Match[str]) -> str:
        return bytes.fromhex(re.sub("[<>]|0x", "", match[0])).decode(errors="replace")

    return _BYTES.sub(characters, text)
