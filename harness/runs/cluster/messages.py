"""What a run says to a judge on another machine, as JSON: the words of `runs.fleet.places`, packed here and unpacked
there.

A job of `Referees` has a form of its own, with everything that it needs in it. Builds travel beside the text, by number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.judge.work_queue import Job
from harness.runs.cluster.parcel import Shelf, packed_candidate, packed_problem, packed_settings, settings_of
from harness.runs.fleet.device_judge import Assignment, Delivery

# One build as it came: the text of its plain values, and its files by their names.
Carried = tuple[str, Mapping[str, bytes]]


def text_of(said: Any) -> tuple[str, list[Any]]:
    """Return what is said as JSON, and the references to the builds that go with it, in the order that it counts them by."""
    if isinstance(said, Assignment):
        values = {name: value for name, value in vars(said).items() if name not in ("problem", "settings")}
        return json.dumps({
            "kind": "assignment", **values, "problem": packed_problem(said.problem),
            "settings": packed_settings(said.settings),
        }), []
    if isinstance(said, Delivery):
        entries = {
            number: each if isinstance(each, str) else packed_candidate(each) for number, each in said.entries.items()
        }
        return json.dumps({
            "kind": "delivery", "job": asdict(said.job), "entries": entries, "builds": list(map(str, said.builds)),
            "quiet": said.quiet,
        }), list(said.builds.values())
    return json.dumps({"kind": "word", "word": said}), []


class Unpacker:
    """On a node: makes of the text what the judge there is told, its files on a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._places: dict[str, Path] = {}  # where a candidate's file lies here, by its path where it came from

    def said(self, text: str, builds: Sequence[Carried]) -> Any:
        """Return what was said. Raises HarnessError for a build that is not what it should be, OSError for a full disk."""
        body = json.loads(text)
        kind = body.pop("kind")
        if kind == "word":
            return body["word"]
        made = [self._shelf.build(json.loads(values), files) for values, files in builds]
        if kind == "assignment":
            problem = self._shelf.problem(body.pop("problem"))
            if problem.baseline is not None:
                self._places[json.loads(text)["problem"]["baseline"]["path"]] = problem.baseline.path
            tuples = {name: tuple(body[name]) for name in ("archs", "extras")}
            return Assignment(**{**body, **tuples, "problem": problem, "settings": settings_of(body["settings"])})
        if kind == "job":
            candidate, problem = self._shelf.candidate(body["candidate"]), self._shelf.problem(body["problem"])
            built = [each for each in (candidate, problem.baseline) if each is not None and each.fault is None]
            return "job", {
                **body, "problem": problem, "candidate": candidate, "settings": settings_of(body["settings"]),
                "builds": {each.path: build for each, build in zip(built, made)} if body["built"] else None,
            }
        entries = {int(number): self._entry(each) for number, each in body["entries"].items()}
        here = [self._places[path] for path in body["builds"]]
        return Delivery(Job(**body["job"]), entries, dict(zip(here, made)), body["quiet"])

    def _entry(self, packed: Any) -> Any:
        if isinstance(packed, str):
            return packed
        candidate = self._shelf.candidate(packed)
        self._places[packed["path"]] = candidate.path
        return candidate
