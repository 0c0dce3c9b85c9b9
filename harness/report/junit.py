"""A comparison as JUnit XML, for build servers that draw it: a suite for each two runs, a case for each candidate."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from harness.report.change_table import change_text
from harness.report.comparison_text import letter
from harness.results.changes import NOT_IN_BOTH
from harness.results.comparison import Compared, Tripped


def as_junit(compared: Compared, stopped: Sequence[Tripped], *, gated: bool) -> str:
    """The XML. What the gates stopped has failed; without gates, what is SLOWER or LOST; UNSURE is skipped."""
    root = ElementTree.Element("testsuites", name="kernel-referee compare")
    reasons = {(id(each.case), each.run, each.name): f"{each.gate}: {each.reason}" for each in stopped}
    suites = [(pair.case, pair.run, f"{pair.case.title}: {letter(pair.run)} against {letter(pair.reference)}", [
        (row.name, change.verdict, f"{change_text(change)} {change.reason}".strip())
        for row, change in pair.changes if change.reason != NOT_IN_BOTH and not row.is_baseline
    ]) for pair in compared.pairs]
    known = {(id(case), run, name) for case, run, _, cells in suites for name, _, _ in cells}
    for each in stopped:
        if (id(each.case), each.run, each.name) not in known:
            title = f"{each.case.title}: {letter(each.run)}"
            suites.append((each.case, each.run, title, [(each.name, "", each.reason)]))
    for case, run, title, cells in suites:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(title), tests=str(len(cells)))
        failures = skipped = 0
        for name, verdict, words in cells:
            test = ElementTree.SubElement(suite, "testcase", classname=_xml(case.problem), name=_xml(name))
            reason = reasons.get((id(case), run, name))
            if reason is None and not gated and verdict in ("SLOWER", "LOST"):
                reason = f"{verdict}: {words}"
            if reason is not None:
                failures += 1
                ElementTree.SubElement(test, "failure", message=_xml(reason))
            elif verdict == "UNSURE":
                skipped += 1
                ElementTree.SubElement(test, "skipped", message=_xml(f"UNSURE: {words}"))
            else:
                ElementTree.SubElement(test, "system-out").text = _xml(f"{verdict} {words}".strip())
        suite.set("failures", str(failures))
        suite.set("skipped", str(skipped))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _xml(text: str) -> str:
    """Without what XML 1.0 has no place for."""
    return "".join(each for each in text if each in "\t\n" or each.isprintable())
