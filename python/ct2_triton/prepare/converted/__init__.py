# SPDX-License-Identifier: Apache-2.0
"""Models without a transformers checkpoint to prove them against.

CTranslate2 folders, Argos packages, OPUS-MT archives and OpenNMT-py checkpoints. They are checked
as far as possible without a second program; a report lists what is not proved.
"""
