# SPDX-License-Identifier: Apache-2.0
"""Speech recognizers whose updates live captions take.

from recognizers import PocketSphinxRecognizer, read_audio
"""

from recognizers.audio import SAMPLE_RATE, read_audio
from recognizers.faster_whisper import FasterWhisperRecognizer
from recognizers.pocketsphinx import PocketSphinxRecognizer

__all__ = ["SAMPLE_RATE", "FasterWhisperRecognizer", "PocketSphinxRecognizer", "read_audio"]
