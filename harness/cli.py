"""The command line: words and flags in, one call into `verbs`, an exit code out.

A first word that is no verb is a problem file. Nothing heavy is imported before the flags are understood, so that
`--help`, `list` and a mistake answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from harness.errors import HarnessError
from harness.flags import understood


def main(arguments: Sequence[str]) -> int:
    """Carry out the command line `arguments` and return the exit code."""
    try:
        return _carry_out(understood(arguments))
    except HarnessError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("interrupted; what was measured so far is in the results file", file=sys.stderr)
        return 130


def _carry_out(options: argparse.Namespace) -> int:
    if options.verb == "run":
        from harness.suite.problems import is_suite

        if options.tune:
            from harness.verbs import tune

            return tune.run(options)
        if options.watch:
            from harness.verbs import watch

            return watch.run(options)
        if options.resume or is_suite(options.problem):
            from harness.verbs import suite

            return suite.run(options)
        from harness.verbs import run

        [options.problem] = options.problem
        return run.run(options)
    if options.verb == "list":
        from harness.verbs import list as listing

        return listing.run(as_json=options.json)
    if options.verb == "doctor":
        from harness.verbs import doctor

        return doctor.run(as_json=options.json)
    if options.verb == "show":
        from harness.verbs import show

        return show.run(options)
    if options.verb == "reproduce":
        from harness.verbs import reproduce

        return reproduce.run(options)
    if options.verb == "profile":
        from harness.verbs import profile

        return profile.run(options)
    if options.verb == "serve":
        from harness.verbs import serve

        return serve.run(options)
    if options.verb in ("new", "new-problem"):
        from harness.verbs import new

        return new.candidate(options) if options.verb == "new" else new.problem(options)
    if options.verb == "cache":
        from harness.verbs import cache

        return cache.run(options)
    if options.verb == "selftest":
        from harness.verbs import selftest

        return selftest.run(options)
    if options.verb == "scores":
        from harness.verbs import scores

        return scores.run(options)
    if options.verb == "report":
        from harness.verbs import report

        return report.run(options)
    from harness.verbs import compare

    return compare.run(options)
