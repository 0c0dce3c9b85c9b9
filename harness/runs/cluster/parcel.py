"""Problems, candidates, settings, builds and what a run says to a judge, as text, and what a node makes of it again.

What crosses between machines is JSON, and bytes of compiled extensions whose digests the JSON has. A `Shelf` writes
files where a node needs them, each candidate in a folder of its own. The words are those of `runs.fleet`. A job of
`Referees` has a form of its own, with everything that it needs in it. Builds travel beside the text, by number.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.build.cache import reads_beside
from harness.build.product import Build
from harness.judge.work_queue import Job
from harness.model.candidate import Candidate, OwnBaseline
from harness.model.errors import HarnessError
from harness.model.files.text_files import replacing
from harness.model.formats.foreign import Written
from harness.model.formulas import Formula
from harness.model.problem import AccuracyRule, Problem
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode
from harness.runs.fleet.device_judge import Assignment, Delivery

MOST_BESIDE_BYTES = 16 << 20  # of what goes with one candidate to another machine
MOST_FOLDERS = 64  # of candidates and builds on a node's disk; a judge is at two candidates at once, each with a few

Packed = Mapping[str, Any]


@dataclass(frozen=True)
class CarriedForm:
    """The form of another project's candidates on a node, where each comes written as a module already."""

    suffix: str
    wanted: str = ""

    def holds(self, path: Path) -> bool:
        return False

    def written(self, path: Path, text: str) -> Written:
        return Written(text)


def packed_problem(problem: Problem) -> Packed:
    """Return `problem` as plain values, with the text of its files and its own baseline."""
    accuracy = problem.accuracy
    own = problem.path != problem.reference_path or problem.form is not None
    return {
        **{name: getattr(problem, name) for name in (
            "name", "title", "sizes", "cpu_sizes", "check_sizes", "dtype", "baselines", "kinds", "hash", "mode", "more_sizes",
            "reference_source",
        )},
        "path": problem.path.name, "reference_path": problem.reference_path.name,
        "text": _text_of(problem.path) if own else None,
        "flops": problem.flops and problem.flops.text, "bytes": problem.bytes and problem.bytes.text,
        "accuracy": {**asdict(accuracy), "terms": accuracy.terms and accuracy.terms.text},
        "form": problem.form and problem.form.suffix,
        "baseline": problem.baseline and packed_candidate(problem.baseline),
    }


def packed_candidate(candidate: Candidate) -> Packed:
    """Return `candidate` as plain values, with what it may read beside its file, if it reads anything.

    One that would bring more than `MOST_BESIDE_BYTES` has that for its fault.
    """
    beside: dict[str, str] = {}
    if candidate.fault is None and reads_beside(candidate):
        try:
            beside = _beside(candidate)
        except ValueError as error:
            candidate = replace(candidate, fault=str(error), fault_code=ReasonCode.IMPORT_ERROR)
    values = {each.name: getattr(candidate, each.name) for each in fields(candidate)}
    return values | {
        "path": str(candidate.path), "fault_code": candidate.fault_code.value, "role": candidate.role, "beside": beside,
    }


def settings_of(packed: Packed) -> Settings:
    """Return the settings of which `packed` has the plain values."""
    return Settings(**{**packed, "looks": tuple(packed["looks"])})


def packed_build(build: Build) -> tuple[Packed, dict[str, bytes]]:
    """Return `build` as plain values, and its files by their names."""
    files = {each.path.name: each.path.read_bytes() for each in build.extensions}
    return {**build.to_json(), "cached": build.cached}, files


class Shelf:
    """Below `root` the files of what came to this node: all problems and baselines, and the last candidates and builds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._latest: OrderedDict[Path, None] = OrderedDict()

    def problem(self, packed: Packed) -> Problem:
        """Return the problem that was packed. Raises OSError where the disk refuses."""
        folder = self.root / "problems" / _digest(packed)
        folder.mkdir(parents=True, exist_ok=True)
        path, reference_path = folder / packed["path"], folder / packed["reference_path"]
        _put(reference_path, packed["reference_source"].encode())
        if packed["text"] is not None:
            _put(path, packed["text"].encode())
        accuracy = packed["accuracy"]
        contracted = accuracy["contracted"]
        return Problem(
            **{name: packed[name] for name in ("name", "title", "sizes", "cpu_sizes", "dtype", "hash", "mode", "reference_source")},
            **{name: tuple(packed[name]) for name in ("check_sizes", "more_sizes", "baselines", "kinds")},
            path=path, reference_path=reference_path, candidates_dir=self.root / "candidates",
            flops=_formula(packed["flops"]), bytes=_formula(packed["bytes"]),
            accuracy=AccuracyRule(**{
                **accuracy, "terms": _formula(accuracy["terms"]), "contracted": contracted and tuple(contracted),
            }),
            form=packed["form"] and CarriedForm(packed["form"]),
            baseline=packed["baseline"] and self.candidate(packed["baseline"]),
        )

    def candidate(self, packed: Packed) -> Candidate:
        """Return the candidate that was packed, whose file lies here now. Raises OSError where the disk refuses."""
        folder = self.root / "candidates" / _digest(packed)
        if packed["role"] == "baseline":
            folder.mkdir(parents=True, exist_ok=True)
        else:
            self._hold(folder)
        for name, content in packed["beside"].items():
            _put(_below(folder, name), base64.b64decode(content))
        path = folder / Path(packed["path"]).name
        _put(path, packed["source"].encode("utf-8", "surrogateescape"))
        kind = OwnBaseline if packed["role"] == "baseline" else Candidate
        values = {name: value for name, value in packed.items() if name not in ("role", "beside")}
        return kind(**{
            **values, "path": path, "fault_code": ReasonCode(packed["fault_code"]),
            "files": packed["files"] and tuple((name, text) for name, text in packed["files"]),
        })

    def build(self, packed: Packed, files: Mapping[str, bytes]) -> Build:
        """Return the build that was packed, whose files lie here now. Raises HarnessError where one has another content."""
        folder = self.root / "builds" / _digest([packed, {name: _sha256(content) for name, content in files.items()}])
        self._hold(folder)
        build = Build.from_json({name: value for name, value in packed.items() if name != "cached"}, folder)
        for extension in build.extensions:
            content = files.get(extension.path.name, b"")
            if _sha256(content) != extension.sha256:
                raise HarnessError(f"{extension.path.name} came with another content than it was built with")
            _put(extension.path, content)
        return replace(build, cached=packed["cached"])

    def _hold(self, folder: Path) -> None:
        """Have `folder` be there, and the one removed that was asked for longest ago, where there are many."""
        folder.mkdir(parents=True, exist_ok=True)
        self._latest[folder] = None
        self._latest.move_to_end(folder)
        if len(self._latest) > MOST_FOLDERS:
            shutil.rmtree(self._latest.popitem(last=False)[0], ignore_errors=True)


def _beside(candidate: Candidate) -> dict[str, str]:
    """What it may read of its folder, by path and in base64. Raises ValueError for too much of it."""
    folder, total, contents = candidate.path.resolve().parent, 0, {}
    own = [path for place in candidate.beside().own for path in ([place] if place.is_file() else sorted(place.rglob("*")))]
    for path in own:
        real = path.resolve()
        if not real.is_file() or not real.is_relative_to(folder) or real == candidate.path.resolve():
            continue
        total += real.stat().st_size
        if total > MOST_BESIDE_BYTES:
            raise ValueError(
                f"{candidate.path.name}: what lies beside it has more than {MOST_BESIDE_BYTES >> 20} MB, too much to go with "
                "it to another machine. Put what it does not need elsewhere"
            )
        contents[str(path.resolve().relative_to(folder))] = base64.b64encode(real.read_bytes()).decode("ascii")
    return contents


def _below(folder: Path, name: str) -> Path:
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder):
        raise HarnessError(f"{name} is no name of a file beside a candidate")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _put(path: Path, content: bytes) -> None:
    """Have the file at `path`, which may be in use, hold `content`."""
    if path.is_file() and path.read_bytes() == content:
        return
    with replacing(path) as part:
        part.write_bytes(content)


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _formula(text: str | None) -> Formula | None:
    return None if text is None else Formula(text)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(values: Any) -> str:
    return _sha256(json.dumps(values, sort_keys=True).encode("utf-8", "surrogatepass"))[:16]


# One build as it came: the text of its plain values, and its files by their names. A list, since Ray pickles a tuple.
Carried = list[Any]


def text_of(message: Any) -> tuple[str, list[Any]]:
    """Return what is said as JSON, and the references to the builds that go with it, in the order that it counts them by."""
    if isinstance(message, Assignment):
        values = {name: value for name, value in vars(message).items() if name not in ("problem", "settings")}
        return json.dumps({
            "kind": "assignment", **values, "problem": packed_problem(message.problem),
            "settings": asdict(message.settings),
        }), []
    if isinstance(message, Delivery):
        entries = {
            number: each if isinstance(each, str) else packed_candidate(each)
            for number, each in message.entries.items()
        }
        return json.dumps({
            "kind": "delivery", "job": asdict(message.job), "entries": entries,
            "builds": list(map(str, message.builds)), "quiet": message.quiet,
        }), list(message.builds.values())
    return json.dumps({"kind": "word", "word": message}), []


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
