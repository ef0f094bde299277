# SPDX-License-Identifier: Apache-2.0
"""The languages of the demo model."""

from __future__ import annotations

SOURCE = "eng"
TARGETS = ("deu", "fra", "spa", "ita", "por", "nld")
LANGUAGES = (SOURCE, *TARGETS)

FLORES = {language: f"{language}_Latn" for language in LANGUAGES}
"""The code of each language in NLLB's vocabulary."""

CLDR = {
    "eng": "en_GB",
    "deu": "de_DE",
    "fra": "fr_FR",
    "spa": "es_ES",
    "ita": "it_IT",
    "por": "pt_PT",
    "nld": "nl_NL",
}
"""The locale whose numbers and dates each language uses."""
