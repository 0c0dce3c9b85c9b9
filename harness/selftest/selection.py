"""Which cases of the corpus are wanted: globs for names, and for groups with names."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from harness.model.errors import InputError, NothingToRun
from harness.model.spelling import nearest
from harness.selftest.corpus import Case


def chosen(cases: Sequence[Case], only: Sequence[str], skip: Sequence[str]) -> list[Case]:
    """Those of `cases` that `only` names and `skip` does not; a glob is for a name or for group/name.

    Raises InputError for a glob that matches no case, NothingToRun when none is left.
    """
    wanted = _matching(cases, only, "--only") if only else set(cases)
    left = [case for case in cases if case in wanted - _matching(cases, skip, "--skip")]
    if not left:
        raise NothingToRun("no case of the corpus is left after --only and --skip. Skip fewer")
    return left


def _matching(cases: Sequence[Case], globs: Sequence[str], flag: str) -> set[Case]:
    matched: set[Case] = set()
    for glob in globs:
        pattern = glob.removesuffix(".py")
        found = [case for case in cases if any(
            fnmatch.fnmatchcase(name, pattern) for name in (case.name, f"{case.group}/{case.name}")
        )]
        if not found:
            guess = nearest(pattern, [case.name for case in cases])
            hint = f"Did you mean '{guess}'?" if guess else "A glob is for a name, or for group/name as in 'clock/*'."
            raise InputError(f"{flag} '{glob}' matches no case of the corpus", hint=hint)
        matched.update(found)
    return matched
