# SPDX-License-Identifier: Apache-2.0
"""Speech recognizers whose updates live captions take.

from ct2_triton.live.recognizers import PocketSphinxRecognizer, read_audio
"""

from ct2_triton.live.recognizers.audio import SAMPLE_RATE, read_audio
from ct2_triton.live.recognizers.faster_whisper import FasterWhisperRecognizer
from ct2_triton.live.recognizers.pocketsphinx import PocketSphinxRecognizer

__all__ = ["SAMPLE_RATE", "FasterWhisperRecognizer", "PocketSphinxRecognizer", "read_audio"]
