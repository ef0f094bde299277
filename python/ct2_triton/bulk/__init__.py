# SPDX-License-Identifier: Apache-2.0
"""Translate more text than one process can: Ray Data distributes blocks of lines.

The command is `ct2-translate bulk`. Translated blocks are stored on disk; after an interruption, a
run continues with the missing ones.
"""
