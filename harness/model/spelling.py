"""The nearest right spelling of a word that the user typed, and the sentence that offers it.

Every message about an unknown key, size, file or candidate ends in one of these hints.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_LISTED_AT_MOST = 8


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The member of `known` that `word` was most likely meant to be; None when none is close. A difference of case
    alone wins over everything else, so that even a one-letter name is found.
    """
    by_lower_case: dict[str, str] = {}
    for name in known:
        by_lower_case.setdefault(name.lower(), name)
    if word.lower() in by_lower_case:
        return by_lower_case[word.lower()]
    close = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[close[0]] if close else None


def listed(names: Sequence[str], last: str = "and") -> str:
    """`names` as English prints a list: "a, b and c"; a long one is cut short and says how many are left."""
    names = list(names)
    if len(names) > _LISTED_AT_MOST:
        names = [*names[: _LISTED_AT_MOST - 1], f"{len(names) - _LISTED_AT_MOST + 1} more"]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def hint_for(word: str, known: Sequence[str], otherwise: str = "") -> str | None:
    """"Did you mean 'x'?", or, when nothing is near, `otherwise` followed by what there is."""
    guess = nearest(word, known)
    if guess is not None and guess != word:
        return f"Did you mean '{guess}'?"
    return f"{otherwise} {listed(known)}." if otherwise and known else None
