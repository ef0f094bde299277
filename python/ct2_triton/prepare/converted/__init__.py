# SPDX-License-Identifier: Apache-2.0
"""Models without a checkpoint of transformers to prove them against.

CTranslate2 folders, Argos packages, OPUS-MT archives and OpenNMT-py checkpoints. What can be
checked without a second program is checked; the rest is said.
"""
