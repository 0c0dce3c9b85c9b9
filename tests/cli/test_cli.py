"""The command line in this process: how words become a verb, and errors become exit codes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from harness import __version__, cli
from harness.cli import flags
from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.model.paths import REPOSITORY
from harness.results import writer


@pytest.fixture
def carried_out(monkeypatch):
    """The options that would have been carried out, instead of carrying them out."""
    seen = []
    monkeypatch.setattr(cli, "_carry_out", lambda options: seen.append(options) or 0)
    return seen


def test_a_word_that_is_no_verb_is_a_problem_file(carried_out):
    assert cli.main(["problems/tril_matmul.yaml", "--device", "cpu"]) == 0
    assert carried_out[0].verb == "run"
    assert list(map(str, carried_out[0].problem)) == ["problems/tril_matmul.yaml"]
    assert carried_out[0].device == "cpu"


def test_flags_may_stand_before_the_problem(carried_out):
    assert cli.main(["--json", "problems/tril_matmul.yaml"]) == 0
    assert carried_out[0].json is True


def test_only_and_skip_may_be_given_several_times(carried_out):
    cli.main(["x.yaml", "--only", "a*", "--only", "b*", "--skip", "c*"])
    assert (carried_out[0].only, carried_out[0].skip) == (["a*", "b*"], ["c*"])


def test_what_was_not_said_has_the_documented_default(carried_out):
    cli.main(["x.yaml"])
    options = carried_out[0]
    assert (options.device, options.config, str(options.out), options.candidates) == ("auto", "default", "results", None)
    assert (options.json, options.strict, options.only, options.skip) == (False, False, [], [])


@pytest.mark.parametrize("verb", ["list", "doctor"])
def test_a_verb_is_a_verb(carried_out, verb):
    assert cli.main([verb, "--json"]) == 0
    assert carried_out[0].verb == verb


@pytest.mark.parametrize(
    ("error", "code"), [(HarnessError("broken"), 1), (InputError("mistyped"), 2), (NothingToRun("nothing there"), 4)]
)
def test_each_error_has_its_exit_code_and_is_one_line_on_stderr(monkeypatch, capsys, error, code):
    def fail(options):
        raise error

    monkeypatch.setattr(cli, "_carry_out", fail)
    assert cli.main(["x.yaml"]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"{error}\n"


def test_an_interruption_ends_with_130_and_says_where_what_is_kept_lies(monkeypatch, capsys, tmp_path):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_carry_out", interrupt)
    monkeypatch.setattr(writer.RunFiles, "latest", None)
    assert cli.main(["x.yaml"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    files = writer.RunFiles.create(tmp_path, "tril", "cpu", "2026-05-01T12:30:05Z")
    assert cli.main(["x.yaml"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    files.records.append(object())
    assert cli.main(["x.yaml"]) == 130
    assert capsys.readouterr().err == f"interrupted; what was measured so far is in {files.csv_path}\n"


def test_a_package_that_is_missing_is_named_and_what_to_type(monkeypatch, capsys):
    def lacking(name):
        def carry_out(options):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

        monkeypatch.setattr(cli, "_carry_out", carry_out)
        return cli.main(["compare", "a.csv", "b.csv"])

    assert lacking("tabulate") == 4
    said = capsys.readouterr().err
    assert said.startswith("tabulate is not installed for ") and said.count("\n") == 1 and "doctor" in said
    with pytest.raises(ModuleNotFoundError):
        lacking("harness.lost")


def test_a_reader_that_went_away_is_no_error(monkeypatch):
    def gone(options):
        raise BrokenPipeError

    monkeypatch.setattr(cli, "_carry_out", gone)
    assert cli.main(["x.yaml"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docter"], "doctor"),
        (["compair"], "compare"),
        (["x.yaml", "--unknown"], "Type python run.py run --help"),
        (["x.yaml", "--cofnig", "quick"], "run has no flag --cofnig. Did you mean --config?"),
        (["cache", "--claer"], "Did you mean --clear?"),
        (["cache", "everything"], "'everything' is one word too many for cache"),
        (["tril_matmull"], "Did you mean tril_matmul?"),
        (["x.yaml", "--device"], "--device"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_mistyped_word_or_flag_is_exit_code_2_with_what_was_meant(capsys, words, said):
    assert cli.main(words) == 2
    assert said in capsys.readouterr().err


def test_help_shows_the_three_things_people_do_and_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for word in ("problems/tril_matmul.yaml", "--candidates", "compare results", "exit codes", "doctor", "list"):
        assert word in text


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("verb", flags.VERBS)
def test_every_verb_has_a_module_that_carries_it_out(verb):
    options = argparse.Namespace(verb=verb, tune=None, watch=False, resume=False, problem=[Path("x.yaml")])
    source = REPOSITORY / "harness" / "cli" / "verbs" / f"{cli._module_of(options)}.py"
    assert "def run(options: argparse.Namespace) -> int:" in source.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["x.yaml"], "run"), (["x.yaml", "--tune", "mine"], "tune"), (["x.yaml", "--watch"], "watch"),
        (["x.yaml", "y.yaml"], "suite"), (["problems"], "suite"), (["x.yaml", "--resume"], "suite"),
        (["*.yaml"], "suite"), (["new-problem", "mine"], "new_problem"),
        (["watch", "x.yaml"], "watch"), (["tune", "x.yaml", "mine"], "tune"), (["suite", "x.yaml"], "suite"),
        (["run", "x.yaml"], "run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_run_has_four_ways_to_run(words, module, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    assert cli._module_of(flags.understood(words)) == module


@pytest.mark.parametrize(("word", "flag"), [
    (["watch", "x.yaml", "--only", "a*"], ["x.yaml", "--only", "a*", "--watch"]),
    (["tune", "x.yaml", "mine", "--trials", "9"], ["x.yaml", "--tune", "mine", "--trials", "9"]),
    (["suite", "x.yaml", "y.yaml", "--resume"], ["x.yaml", "y.yaml", "--resume"]),
])
def test_a_word_asks_for_what_its_flag_asks_for(word, flag):
    by_word, by_flag = (vars(flags.understood(words)) for words in (word, flag))
    assert by_word.pop("verb") == word[0] and by_flag.pop("verb") == "run"
    assert {**by_word, "trials": by_word.get("trials", 32)} == by_flag
