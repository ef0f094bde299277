# SPDX-License-Identifier: Apache-2.0
"""Live captions: a speech recognizer's growing text, translated while it is spoken.

from ct2_triton.live import LiveTranslator, SegmentUpdate
"""

from ct2_triton.live.options import LiveOptions
from ct2_triton.live.sync_translator import SyncLiveTranslator
from ct2_triton.live.translator import LiveTranslator
from ct2_triton.live.updates import Caption, LiveInputError, SegmentUpdate

__all__ = [
    "Caption",
    "LiveInputError",
    "LiveOptions",
    "LiveTranslator",
    "SegmentUpdate",
    "SyncLiveTranslator",
]
