# SPDX-License-Identifier: Apache-2.0
"""Add the English name and the aliases to every language of a model.

Each family has its own codes (`deu_Latn`, `de`, `de_DE`, `deu`). The aliases of a code are BCP 47
tags (`de`, `de-Latn`), ISO 639-3 (`deu`), ISO 639-2/B (`ger`), the FLORES-200 name (`deu_Latn`) and
the English name (`German`).
An alias that fits several languages of the model belongs to the closest: the one with the same
language subtag, then its usual variety (`ar` is `arb_Arab`), then any member of the macrolanguage
(`ps` is `pbt_Arab`); among those, the one in the language's usual script (`zh` is `zho_Hans`). A
name that is still ambiguous is not an alias.

A region can imply a script (`zh-TW`, `pa-PK`). Such a name is an alias of the language in that
script. If the model lacks it, the name is stored separately, so that it is refused instead of
answered in the other script. All tables are from `langcodes`: IANA's registry and CLDR's likely
subtags.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ct2_triton.prepared_model import Language

# Codes of models that are not the language's code, with the code to look up.
_MODEL_CODES = {"ns": "nso"}

# Further names of languages, by ISO 639-3 code, that no table of subtags has, such as those of
# FLORES+, the successor of FLORES-200.
_OTHER_SUBTAGS = {
    "est": ("ekk",),
    "fil": ("tgl", "tl"),
    "heb": ("iw",),
    "nob": ("no", "nor"),
    "nor": ("nb", "nob"),
    "tgl": ("fil", "tl"),
    "zho": ("cmn",),
}

# A model's code -> the FLORES-200 name of the same rows of training data. NLLB was released with
# Santali under the wrong script. `arb_Latn` and `min_Arab` of FLORES-200 have no token at all.
_FLORES_NAMES = {"sat_Beng": "sat_Olck"}

_EXACT, _VARIETY, _MEMBER = 0, 1, 2


def with_aliases(languages: Sequence[Language], tags: Mapping[str, str]) -> tuple[Language, ...]:
    """Add names, and aliases that are unique in the model, to languages in their order.

    `tags` has the BCP 47 tag of each code that denotes a language.
    """
    taken = {_fold(entry.code) for entry in languages}
    aliases: dict[str, list[str]] = defaultdict(list)
    for names_of in (_candidates, _words):  # a name that is a code (Ga, Mon) is no alias
        claims: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for entry in languages:
            tag = tags.get(entry.code)
            if tag and _is_well_formed(tag):
                for alias, (rank, subtag) in names_of(entry.code, tag).items():
                    claims[alias].append((rank, _script_distance(subtag, tag), entry.code))
        for alias, claim in claims.items():
            if (winner := _winner(claim)) and _fold(alias) not in taken:
                aliases[winner].append(alias)
        taken |= {_fold(alias) for alias in claims}
    found = (replace(entry, aliases=tuple(sorted(aliases[entry.code]))) for entry in languages)
    return tuple(replace(one, name=_name(one, tags.get(one.code))) for one in found)


def _name(language: Language, tag: str | None) -> str:
    import langcodes

    is_known = tag is not None and _is_well_formed(tag)
    return str(langcodes.Language.get(language.tag).display_name()) if is_known else ""


def names_of_other_scripts(
    languages: Sequence[Language], tags: Mapping[str, str]
) -> dict[str, str]:
    """Return the names whose region implies a script that the model does not have.

    The values are ISO 15924 codes, for example `Hant` for `zh-TW`.
    """
    known = {_fold(name) for entry in languages for name in (entry.code, *entry.aliases)}
    found = {
        f"{subtag}-{region}": script
        for entry in languages
        if (tag := tags.get(entry.code)) and _is_well_formed(tag)
        for subtag in _subtags(_subtag_of(tag))
        for region, script in _scripts_by_region(subtag).items()
    }
    return {name: script for name, script in sorted(found.items()) if _fold(name) not in known}


def _is_well_formed(tag: str) -> bool:
    import langcodes
    from langcodes.tag_parser import LanguageTagError

    try:
        langcodes.Language.get(tag)
    except LanguageTagError:
        return False
    return True


def _candidates(code: str, tag: str) -> dict[str, tuple[int, str]]:
    """Return the codes of one language, each with its distance and tag."""
    import langcodes

    parsed = langcodes.Language.get(tag, normalize=False)
    script = parsed.script or langcodes.Language.get(tag).maximize().script
    names: dict[str, int] = {}
    for subtag, rank in _subtags(_subtag_of(tag)).items():
        names.setdefault(subtag, rank)
        if script:
            names.setdefault(f"{subtag}{'-' if len(subtag) == 2 else '_'}{script}", rank)
        for region, usual in _scripts_by_region(subtag).items():
            if usual == script:
                names.setdefault(f"{subtag}-{region}", rank)
    if code in _FLORES_NAMES:
        names[_FLORES_NAMES[code]] = _EXACT
    standard = langcodes.standardize_tag(tag, macro=True)
    names.setdefault(standard, _VARIETY)
    return {name: (rank, name) for name, rank in names.items()}


def _words(_code: str, tag: str) -> dict[str, tuple[int, str]]:
    """Return English names and ISO 639-2/B codes, each with its distance and subtag."""
    import langcodes

    words: dict[str, tuple[int, str]] = {}
    for subtag, rank in _subtags(_subtag_of(tag)).items():
        language = langcodes.Language.get(subtag, normalize=False)
        name = language.language_name("en")
        bibliographic = _alpha3(subtag, "B")
        if bibliographic != _alpha3(subtag):
            words.setdefault(bibliographic, (rank, subtag))
        if not name.startswith("Unknown language"):
            words.setdefault(name, (rank, subtag))
    return words


def _subtag_of(tag: str) -> str:
    import langcodes

    subtag = str(langcodes.Language.get(tag, normalize=False).language)
    return _MODEL_CODES.get(subtag, subtag)


def _subtags(subtag: str) -> dict[str, int]:
    """Return the subtags of a language: its ISO 639 codes, then those of its macrolanguage."""
    import langcodes
    from langcodes.data_dicts import MACROLANGUAGES

    exact = {name for name in (subtag, langcodes.standardize_tag(subtag)) if "-" not in name}
    alpha3 = {name for name in map(_alpha3, exact) if name}
    exact |= alpha3 | {other for name in alpha3 for other in _OTHER_SUBTAGS.get(name, ())}
    variety = langcodes.standardize_tag(subtag, macro=True)
    varieties = {variety, _alpha3(variety)} if "-" not in variety else set()
    macro = MACROLANGUAGES.get(subtag, "")
    # A language with its own two-letter code is not a variety: Indonesian is not Malay.
    has_own = any(len(name) == 2 for name in exact)
    members = {macro, _alpha3(macro)} if macro and not has_own else set()
    ranked = {name: _MEMBER for name in members if name}
    ranked |= {name: _VARIETY for name in varieties if name}
    return ranked | dict.fromkeys(exact, _EXACT)


@cache
def _scripts_by_region(subtag: str) -> dict[str, str]:
    """Return the regions in which a language is usually written in another script."""
    import langcodes
    from langcodes.data_dicts import LIKELY_SUBTAGS

    two_letters = langcodes.standardize_tag(subtag)  # the table has two-letter codes
    usual = langcodes.Language.get(two_letters).maximize().script
    found = {}
    for key, likely in LIKELY_SUBTAGS.items():
        language, _, region = key.partition("-")
        script = likely.split("-")[1]
        if language == two_letters and len(region) in (2, 3) and script != usual:
            found[region] = script
    return found


def _alpha3(subtag: str, variant: str = "T") -> str:
    import langcodes

    try:
        return langcodes.Language.get(subtag, normalize=False).to_alpha3(variant=variant)
    except LookupError:
        return ""


def _script_distance(alias: str, tag: str) -> int:
    """Return 0 if the alias is usually written in the script of the tag, else 1."""
    import langcodes

    wanted = langcodes.Language.get(tag).maximize().script
    usual = langcodes.Language.get(alias).maximize().script
    return 0 if wanted == usual else 1


def _winner(claims: Iterable[tuple[int, int, str]]) -> str | None:
    """Return the code of the closest claim; None if two are equally close."""
    ordered = sorted(claims)
    if len(ordered) > 1 and ordered[0][:2] == ordered[1][:2]:
        return None
    return ordered[0][2]


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")
