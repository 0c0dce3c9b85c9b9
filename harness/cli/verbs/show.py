"""`run.py show`: everything known about one candidate, on one screen."""

from __future__ import annotations

import argparse
import json
import sys

from harness.model.files.text_files import shown
from harness.report import terminal
from harness.report.candidate_page import render
from harness.results.lookup import find_record
from harness.results.samples import compiler_reports, evidence_in, read_samples


def run(options: argparse.Namespace) -> int:
    """Print the newest record of what `options.candidate` names. Raises InputError when there is none."""
    newest = find_record(options.candidate, options.results)
    samples = read_samples(newest.path, newest.record)
    evidence = evidence_in(samples)
    if options.json:
        print(json.dumps({
            "csv": shown(newest.path), "others": [shown(each) for each in newest.others],
            "at_other_sizes": [each.to_json() for each in newest.at_other_sizes],
            "record": newest.record.to_json(), "evidence": evidence and evidence.to_json(),
            "errors": samples.get("errors", []), "kernels": samples.get("kernels", []),
            "compiler": compiler_reports(samples), "clocks": samples.get("clocks"),
        }))
        return 0
    print(render(
        newest.record, samples, evidence, path=newest.path, others=newest.others, at_other_sizes=newest.at_other_sizes,
        **terminal.fitting(sys.stdout),
    ))
    return 0
