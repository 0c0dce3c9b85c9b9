"""The words of a comparison that a terminal and a page share: names of runs, results, what did not match."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.results.comparison import Compared
from harness.results.joined_runs import Case, Difference, Row, is_forcible
from harness.results.ranking import class_of
from harness.results.record import Record

_LONGEST_NAME = 32
_MOST_RUNS = 12  # listed one by one


def letter(run: int) -> str:
    """The name of a run in the output: A, B, … Z, then R27 and so on."""
    return chr(ord("A") + run) if run < 26 else f"R{run + 1}"


def device_texts(compared: Compared) -> list[str]:
    """The device of each run by its name; cards of one model with the beginnings of their UUIDs."""
    runs = compared.joined.runs
    cards: dict[str, set[object]] = {}
    for run in runs:
        cards.setdefault(run.device_name, set()).add(run.device)
    return [
        f"{run.device_name} ({run.records[0].uuid[:12]})" if len(cards[run.device_name]) > 1 and run.records[0].uuid
        else run.device_name for run in runs
    ]


def result_text(record: Record) -> str:
    """What a run says of a candidate, in a few words: its speedup with the interval, or its status."""
    text = terminal.ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)
    if record.status is Status.UNSURE:
        return f"{text} unsure".strip()
    return (text or "ok, no speedup") if record.status is Status.OK else record.status.value


def unmatched_texts(compared: Compared) -> list[str]:
    """One sentence for each candidate or problem that only one run has."""
    return [text for case in compared.joined.cases for text in _unmatched(case)]


def refusal_texts(compared: Compared) -> list[str]:
    """One sentence for each two runs that were kept apart, with the fields that differ."""
    return [
        f"{case.title}, {letter(one)} and {letter(other)}: "
        + "; ".join(f"{name} is {a!r} in {letter(one)}, {b!r} in {letter(other)}" for name, a, b in mixed)
        + (" (the hash covers the problem file with its accuracy rule, and the reference)"
           if any(name == "problem_hash" for name, _, _ in mixed) else "")
        + ("" if is_forcible(mixed) else "; speedups over two baselines are not compared, even with --force")
        for case, one, other, mixed in compared.refusals()
    ]


def difference_text(difference: Difference) -> str:
    """`software: torch: A: 2.11.0; B, C: 2.13.0`."""
    holders: dict[str, list[str]] = {}
    for run, value in enumerate(difference.values):
        holders.setdefault("not recorded" if value is None else value, []).append(letter(run))
    told = [f"{_letters(who)}: {text}" for text, who in list(holders.items())[:_MOST_RUNS]]
    more = [f"and {len(holders) - _MOST_RUNS} other values"] if len(holders) > _MOST_RUNS else []
    return f"{difference.group}: {difference.name}: " + "; ".join(told + more)


def name_text(compared: Compared, row: Row) -> str:
    """The name, with a word for what is no candidate: a baseline, or one outside the ranking's class."""
    name = terminal.shortened(terminal.one_line(row.name), _LONGEST_NAME)
    for run, record in zip(compared.joined.runs, row.records):
        if record is not None and record.role == "baseline":
            outside = record.precision_class not in (None, class_of(run.records))
            return f"{name} ({'outside class' if outside else 'baseline'})"
    return name


def _letters(who: Sequence[str]) -> str:
    return ", ".join(who) if len(who) <= _MOST_RUNS else f"{', '.join(who[:3])} … {who[-1]} ({len(who)} runs)"


def _unmatched(case: Case) -> list[str]:
    if len(case.runs) == 1:
        names = [each.name for each in case.unmatched] or ["its baseline"]
        return [f"{case.title}: only in {letter(case.runs[0])} ({listed(names)})"]
    texts = []
    for each in case.unmatched:
        if each.edited:
            found = [f"{letter(run)} has {(record.source_hash or '?')[:8]}, {result_text(record)}"
                     for run, record in each.found]
            texts.append(f"{each.name}: its source was edited, so it is not joined (--by name joins it): "
                         + "; ".join(found))
        else:
            texts += [f"{each.name}: only in {letter(run)} ({result_text(record)})" for run, record in each.found]
    return texts
