# SPDX-License-Identifier: Apache-2.0
"""Texts that tokenizers are known to disagree on."""

from __future__ import annotations

SPACES = (
    "  two  spaces ",
    "trailing ",
    " leading",
    "tab\there",
    "new\nline",
    "carriage\r\nreturn",
    "\u00a0no-break space\u00a0",
    "\u3000ideographic space",
    "▁lower one eighth block ▁ ",
)
SCRIPTS = (
    "日本語テキスト",
    "العربية",
    "हिन्दी",
    "emoji 👩\u200d👩\u200d👧 and a flag \U0001f1e9\U0001f1ea",
    "ﬁ ligature, ½ ① Ａ",
    "e\u0301 combining, é composed",
)
INVISIBLE = (
    "\u200bzero width space",
    "NUL\0inside",
    "\ufeffbyte order mark",
    "soft\u00adhyphen",
    "\x01\x02 control",
    "\ufffd replacement",
)
LONG = ("a" * 3000, "word " * 700)
SPECIAL_TOKENS = (
    "fra_Latn in the text",
    "a </s> b",
    "<s>hello<s>world",
    "<unk> <mask> <pad>",
    "__fr__ bonjour",
    "fr_XX bonjour",
    ">>fra<< bonjour",
    "<2fr> bonjour",
)
NOTHING = ("", " ", "\n\t ", "\u3000", "\u200b", "\x01", "\u200b \u200b")

ODD_TEXTS = (*SPACES, *SCRIPTS, *INVISIBLE, *LONG, *SPECIAL_TOKENS, *NOTHING)
