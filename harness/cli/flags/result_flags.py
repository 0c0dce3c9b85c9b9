"""The flags of the verbs that read results: compare, scores, report, show, reproduce."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.flags.parser import add_verb
from harness.model.places import own


def add_compare(verbs: argparse._SubParsersAction) -> None:
    compare = add_verb(verbs, "compare", "put results of several runs side by side")
    compare.add_argument(
        "paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR|GLOB",
        help="a DIR stands for the newest run of each device in it (default: results)",
    )
    compare.add_argument(
        "--fail-on", action="append", default=[], metavar="slower[:1%]|incorrect",
        help="exit 3 when a candidate is slower, by its whole interval, or newly wrong",
    )
    compare.add_argument(
        "--by", default="source", metavar="source|name", help="what makes two candidates one (default: the same source)"
    )
    compare.add_argument(
        "--show", metavar="time,tflops,sol,energy",
        help="absolute figures of several devices, any of these, with the ratio of each pair (default: speedups)",
    )
    compare.add_argument("--force", action="store_true", help="compare what was measured by different methods too")
    compare.add_argument(
        "--format", default="table", choices=("table", "markdown", "csv", "json"), help="what to print"
    )
    compare.add_argument("--json", action="store_true", help="the same as --format json")
    compare.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML too")


def add_scores(verbs: argparse._SubParsersAction) -> None:
    scores = verbs.add_parser("scores", help="KernelBench's fast_p, mean speedup and correctness over results")
    scores.add_argument(
        "paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR|GLOB",
        help="a DIR stands for the newest row of each candidate on each device in it (default: results)",
    )
    scores.add_argument("--json", action="store_true", help="print JSON")


def add_report(verbs: argparse._SubParsersAction) -> None:
    report = verbs.add_parser("report", help="write one HTML file of all results, with charts, that opens offline")
    report.add_argument(
        "paths", nargs="*", type=Path, default=[own("results")], metavar="CSV|DIR", help="results (default: results)"
    )
    report.add_argument("--out", type=Path, metavar="FILE", help="where it goes (default: DIR/report.html)")
    report.add_argument(
        "--candidates", action="append", type=Path, default=[], metavar="DIR",
        help="look for sources here before candidates/",
    )
    report.add_argument("--open", action="store_true", help="open it in the browser")
    report.add_argument("--json", action="store_true", help="print JSON")


def add_show(verbs: argparse._SubParsersAction) -> None:
    show = verbs.add_parser("show", help="everything known about one candidate; where in its output the errors sit")
    _add_record(show)
    show.add_argument("--json", action="store_true", help="print JSON")


def add_reproduce(verbs: argparse._SubParsersAction) -> None:
    reproduce = verbs.add_parser(
        "reproduce", help="make the launch that failed again; its inputs, got and expected to a file"
    )
    _add_record(reproduce)
    reproduce.add_argument("--out", type=Path, metavar="FILE", help="what to write (default: NAME.reproduced.pt)")
    reproduce.add_argument("--file", type=Path, metavar="FILE", help="the candidate's file, where it has moved")
    reproduce.add_argument("--problem", type=Path, metavar="PROBLEM", help="the problem's file, where it has moved")
    reproduce.add_argument("--device", metavar="auto|cuda:0|cpu", help="where to run (default: as the record's run)")
    reproduce.add_argument("--config", default="default", metavar="NAME", help="settings; their time limits count")
    reproduce.add_argument("--json", action="store_true", help="print JSON")


def _add_record(verb: argparse.ArgumentParser) -> None:
    """The words by which a verb finds one record."""
    verb.add_argument(
        "candidate", nargs="+", metavar="CANDIDATE",
        help="a name, PROBLEM/NAME, a file, or a CSV (or DIR) and a name; the newest record counts",
    )
    verb.add_argument(
        "--results", type=Path, default=own("results"), metavar="DIR", help="where to look (default: results)"
    )
