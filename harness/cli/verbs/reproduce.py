"""`run.py reproduce`: the launch that a verdict rests on, made again, with its tensors written to a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness.device.choice import check_device_name, require_torch
from harness.model.candidate import Candidate, read_candidate
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import Problem, find_problem, in_mode, load_problem
from harness.model.settings import load_settings
from harness.model.verdict import NEVER_LAUNCHED, Status
from harness.reference.evidence import Evidence
from harness.report.evidence_text import evidence_lines
from harness.results.lookup import FoundRecord, find_record
from harness.results.samples import evidence_in, read_samples
from harness.sandbox.prestart import prestart

if TYPE_CHECKING:
    from harness.runs.reproduction import Reproduction


def run(options: argparse.Namespace) -> int:
    """Make the launch again and write its tensors. Returns 0, whether it failed again or not."""
    newest = find_record(options.candidate, options.results)
    evidence = _evidence_of(newest)
    problem = _problem_of(newest, evidence, options.problem)
    candidate = _candidate_of(newest, evidence, problem, options.file)
    device = options.device or ("cpu" if newest.record.on_cpu else "cuda:0")
    check_device_name(device)
    settings = load_settings(options.config)
    path = options.out or Path(f"{candidate.name}.reproduced.pt")
    if not path.parent.is_dir():
        raise InputError("there is no such folder to write to", path.parent, hint="Choose another file with --out FILE")
    notes = _changed(newest, problem, candidate)
    require_torch()
    prestart()
    from harness.report.progress import open_progress
    from harness.runs.reproduction import reproduce

    with open_progress(silent=options.json) as progress:
        made = reproduce(problem, candidate, evidence.recipe, device, settings, progress)
    made.save(path, evidence.recipe)
    if made.same_inputs is False:
        notes.append("the inputs are not the record's own: another device, another PyTorch, or a get_inputs() that "
                     "draws from elsewhere than torch")
    failed_again = made.verdict.status is not Status.OK
    if options.json:
        print(json.dumps({
            "csv": shown(newest.path), "candidate": candidate.name, "file": shown(path), "failed_again": failed_again,
            "status": made.verdict.status.value, "reason_code": made.verdict.reason_code.value,
            "reason": made.verdict.reason or None, "same_inputs": made.same_inputs, "notes": notes,
            "evidence": made.evidence and made.evidence.to_json(),
        }))
    else:
        print("\n".join(_text(newest, made, notes, path)))
    return 0


def _evidence_of(newest: FoundRecord) -> Evidence:
    evidence = evidence_in(read_samples(newest.path, newest.record))
    if evidence is not None:
        return evidence
    record = newest.record
    it_is = f"{record.candidate} is {record.status.value} in {shown(newest.path)}"
    if record.status in (Status.OK, Status.CHECKED):
        raise InputError(f"{it_is}: no launch of it failed", hint="Name one that is incorrect, imprecise or rejected")
    if record.status in NEVER_LAUNCHED:
        raise InputError(f"{it_is}: there is no launch to make again",
                         hint=f"Type {PROGRAM} show {record.candidate} for what was said of it")
    message = f"nothing is kept of a launch of {record.candidate} ({record.status.value}) in {shown(newest.path)}"
    hint = "Run it again: only verdicts that rest on one launch have a recipe, and only since this version"
    raise InputError(message, hint=hint)


def _problem_of(newest: FoundRecord, evidence: Evidence, named: Path | None) -> Problem:
    path = named or Path(evidence.paths.get("problem", newest.record.problem))
    problem = load_problem(find_problem(path if path.exists() or named else Path(newest.record.problem)))
    return in_mode(problem, newest.record.mode)


def _candidate_of(newest: FoundRecord, evidence: Evidence, problem: Problem, named: Path | None) -> Candidate:
    path = named or Path(evidence.paths.get("candidate", ""))
    if named is None and not path.is_file():
        name = newest.record.candidate + (problem.form.suffix if problem.form else ".py")
        places = [folder / name for folder in problem.candidate_folders]
        path = next((place for place in places if place.is_file()), places[0])
    if not path.is_file():
        raise InputError("there is no such candidate file", shown(path), hint="Name it with --file FILE")
    return read_candidate(path, form=problem.form)


def _changed(newest: FoundRecord, problem: Problem, candidate: Candidate) -> list[str]:
    notes = []
    if newest.record.source_hash != candidate.source_hash:
        notes.append(f"{shown(candidate.path)} has changed since that run: this is the file as it is now")
    if newest.record.problem_hash != problem.hash:
        notes.append(f"{shown(problem.path)} or its reference has changed since that run")
    return notes


def _text(newest: FoundRecord, made: Reproduction, notes: list[str], path: Path) -> list[str]:
    then = newest.record
    before = f"{then.status.value} ({then.reason_code.value})" if then.reason_code else then.status.value
    lines = [f"Then:  {before}: {then.reason.splitlines()[0] if then.reason else ''}"]
    if made.verdict.status is Status.OK:
        lines.append("Again: right this time. It hangs on more than the inputs: a race, or what earlier calls left.")
    else:
        lines += [f"Again: {made.verdict.status.value} ({made.verdict.reason_code.value}): {made.verdict.reason}"]
    if made.same_inputs:
        lines.append("The inputs are the record's own, to the bit.")
    lines += [f"note: {note}" for note in notes]
    if made.evidence is not None:
        lines += ["", *evidence_lines(made.evidence)]
    kept = "inputs, got and expected" if made.got is not None else "inputs and expected (it returned nothing that could be kept)"
    return [*lines, "", f"Written: {shown(path)}, {kept}; torch.load({str(shown(path))!r}) reads them"]
