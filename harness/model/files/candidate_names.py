"""What a candidate's file may be called: in plain letters, and unlike any baseline and any other candidate.

A reader of a table tells rows apart by their names, and a CSV is joined by them. So a name is made of characters that
look like nothing else and are their own compatibility form (NFKC), and of two names that differ in what a reader
overlooks only one is taken.
"""

from __future__ import annotations

import functools
import re

BASELINES = ("eager", "torch.compile", "eager-tf32")  # as `baselines` and the YAML have them
_READ_AS_MISSING = ("NA", "NULL", "NaN", "None", "nan", "null")  # by pandas without options
_BEGINS_A_FORMULA = "=+-@"  # in a cell of a spreadsheet, and - a flag besides
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.+,=@()-]| (?! ))*(?<![_.+,=@ -])")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.+,=@() -]")
_SEPARATORS = re.compile(r"[-_.+,=@() ]+")
# Letters that a font may not tell apart, as Unicode's own table of confusable characters has them.
_ALIKE = str.maketrans("01IO", "ollo")
_PAIRS = (("rn", "m"), ("vv", "w"))


def fault_of_name(stem: str) -> str | None:
    """Why a candidate may not be called `stem`, whatever else there is; None where it may."""
    if stem in _READ_AS_MISSING:
        return "a table of results would read this name as a missing value"
    if not stem.isprintable():
        return "its name has a character that cannot be printed, a line break perhaps"
    if stem[0] in _BEGINS_A_FORMULA:
        return f"a spreadsheet would read a name that begins with '{stem[0]}' as a formula"
    if stem in BASELINES:
        return f"{stem} is the name of a baseline"
    if _PLAIN.fullmatch(stem) is None:
        return "a name is made of the letters a to z and digits, with any of _ - . + , = @ ( ) and single blanks " \
            "between them, so that none looks like another's"
    alike = next((baseline for baseline in BASELINES if look_alike(stem, baseline)), None)
    return None if alike is None else f"its name looks like {alike}, a baseline's"


def cell_of(stem: str, *, is_refused: bool) -> str:
    """The stem for a cell of a table: a refused one begins with a ?, and has one for each character none may have."""
    if not is_refused:
        return stem
    plain = _NOT_PLAIN.sub("?", stem).strip()
    return plain if plain.startswith("?") else f"?{plain[1:] if stem[0] in _BEGINS_A_FORMULA else plain}"


def look_alike(one: str, other: str) -> bool:
    """Whether two plain names differ only in case, separators, or letters that a font may not tell apart."""
    return bool(forms_of(one) & forms_of(other))


def is_plainest(name: str) -> bool:
    """Whether the name is in the form that most have: small letters, digits and underscores."""
    return re.fullmatch("[a-z0-9_]+", name) is not None


@functools.lru_cache(maxsize=10_000)
def forms_of(name: str) -> frozenset[str]:
    """What is left of a name once what a reader overlooks is made one: two names that share a form look alike."""
    alike = name.translate(_ALIKE).casefold()
    for pair, letter in _PAIRS:
        alike = alike.replace(pair, letter)
    return frozenset(_SEPARATORS.sub("_", each).strip("_") for each in (name.casefold(), alike))
