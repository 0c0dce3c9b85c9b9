"""The flags of the verbs about the place of work: list, doctor, new, new-problem, cache."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.flags.parser import CANDIDATES
from harness.model.places import own


def add_list(verbs: argparse._SubParsersAction) -> None:
    listing = verbs.add_parser("list", help="problems, their candidates, and the settings")
    listing.add_argument("--json", action="store_true", help="print JSON")


def add_doctor(verbs: argparse._SubParsersAction) -> None:
    doctor = verbs.add_parser("doctor", help="what this machine has, what is missing and how to get it")
    doctor.add_argument("--json", action="store_true", help="print JSON")


def add_new(verbs: argparse._SubParsersAction) -> None:
    new = verbs.add_parser("new", help="write a candidate that runs as it stands, to be changed from there")
    new.add_argument("problem", type=Path, metavar="PROBLEM", help="a problem's name or file")
    new.add_argument("name", metavar="NAME", help="what the candidate is to be called; nothing is overwritten")
    new.add_argument(
        "--from", dest="rung", metavar="CANDIDATE", help="begin as a copy of this one (default: of the reference)"
    )
    new.add_argument("--candidates", type=Path, metavar="DIR", help=CANDIDATES)
    new.add_argument("--json", action="store_true", help="print JSON")


def add_new_problem(verbs: argparse._SubParsersAction) -> None:
    problem = verbs.add_parser("new-problem", help="write a problem that is complete as it stands, to be changed from there")
    problem.add_argument("name", metavar="NAME", help="what the problem is to be called; nothing is overwritten")
    problem.add_argument(
        "--problems", type=Path, default=own("problems"), metavar="DIR", help="where to put it (default: problems)"
    )
    problem.add_argument("--json", action="store_true", help="print JSON")


def add_cache(verbs: argparse._SubParsersAction) -> None:
    cache = verbs.add_parser("cache", help="what the cache of builds holds, and clearing it")
    cache.add_argument("--clear", action="store_true", help="remove everything that no run under way may be using")
    cache.add_argument("--older-than", metavar="AGE", help="remove what has not been used for this long: 30d, 12h, 2w")
    cache.add_argument("--json", action="store_true", help="print JSON")
