# SPDX-License-Identifier: Apache-2.0
"""Translate text with a model that Triton serves.

    from ct2_triton.client import TranslationClient

Importing this is fast: gRPC, protobuf and the tokenizer libraries are imported at the first use.
"""

from ct2_triton.client.client import TranslationClient
from ct2_triton.client.results import Hypothesis, TextPart, Translation, Verdict
from ct2_triton.client.retry import RetryPolicy
from ct2_triton.client.stream import Sentence, StreamItem
from ct2_triton.client.sync_client import SyncTranslationClient
from ct2_triton.client.tokenization import Tokenizer

__all__ = [
    "Hypothesis",
    "RetryPolicy",
    "Sentence",
    "StreamItem",
    "SyncTranslationClient",
    "TextPart",
    "Tokenizer",
    "Translation",
    "TranslationClient",
    "Verdict",
]
