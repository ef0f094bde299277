# SPDX-License-Identifier: Apache-2.0
"""Translate more text than one process takes: blocks of lines, shared out by Ray Data.

`ct2-translate bulk` is its command. A translated block is stored on disk; a run that ended early
continues with those that are missing.
"""
