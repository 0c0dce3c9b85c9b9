"""What people type: flags, files, mistakes, and an interruption; each answered with an exit code and plain words."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch

from harness.sandbox.locks import Lock

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY / "tests" / "adversarial"
TRIL = REPOSITORY / "problems" / "tril_matmul.yaml"

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("command-line")
    bench.candidates(
        [CORPUS / "honest" / "torch_masked.py", CORPUS / "form" / "returns_none.py",
         CORPUS / "form" / "no_model_new.py"]
    )
    return bench


@pytest.fixture(scope="module")
def problem(bench):
    return bench.folder / "tril_small.yaml"


def sentence(end) -> str:
    """The one message of a command that failed: nothing on stdout, no traceback, not a sandbox of text."""
    assert end.out == ""
    assert "Traceback" not in end.err
    lines = [line for line in end.err.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 3, end.err
    return end.err


MISTAKES = {
    "a missing problem": ([TRIL.with_name("tril_matmull.yaml")], "tril_matmul.yaml"),
    "a word that is neither verb nor file": (["doctr"], "doctor"),
    "a folder without problems": ([REPOSITORY / "docs" / "images"], "holds no problem file"),
    "a glob that no problem matches": (["nowhere/*.py"], "no problem file matches"),
    "a device that is none": ([TRIL, "--device", "toaster"], "--device cpu"),
    "settings that are not there": ([TRIL, "--config", "quik"], "quick"),
    "a glob that matches nothing": ([TRIL, "--only", "tield*"], "tiled"),
    "a folder of candidates that is not there": ([TRIL, "--candidates", "/no/such/folder"], "/no/such/folder"),
    "an unknown flag": ([TRIL, "--devise", "cpu"], "--devise"),
    "no words at all": ([], "PROBLEM"),
    "a result that is not there": (["compare", "/no/such.csv"], "/no/such.csv"),
}


@pytest.mark.parametrize(("words", "named"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_in_a_sentence_with_exit_code_2(bench, words, named):
    end = bench.run(*words, timeout_s=60)
    assert end.code == 2
    assert named in sentence(end)


YAML_MISTAKES = {
    "a misspelt key": (lambda text: text.replace("title:", "titel:"), ["problem.yaml:", "titel", "title"]),
    "a wrong type": (lambda text: text.replace("{M: 257}", "{M: many}"), ["problem.yaml:", "many"]),
    "a formula that does not evaluate": (lambda text: text.replace("terms: M", "terms: MM"), ["problem.yaml:", "MM"]),
    "an empty file": (lambda text: "", ["problem.yaml", "empty"]),
    "a list": (lambda text: "- 1\n- 2\n", ["problem.yaml"]),
    "no YAML": (lambda text: "a: [1,\nb: }", ["problem.yaml:"]),
    "a reference that is not there": (
        lambda text: text.replace("tril_small.py", "tril_smal.py"), ["problem.yaml:", "tril_small.py"]
    ),
}


@pytest.mark.parametrize(("change", "named"), YAML_MISTAKES.values(), ids=YAML_MISTAKES)
def test_a_mistake_in_a_problem_names_file_line_and_what_to_write(bench, problem, change, named):
    path = bench.folder / "problem.yaml"
    path.write_text(change(problem.read_text(encoding="utf-8")), encoding="utf-8")
    end = bench.run(path, timeout_s=60)
    assert end.code == 2
    assert all(word in sentence(end) for word in named), end.err


REFERENCES = {
    "no class Model": ("import torch\ndef get_inputs():\n    return []\n", "Model"),
    "a Python error": ("class Model(:\n", "reference.py:1"),
    "inputs that raise": (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        "def get_inputs():\n    return [torch.rand(nothing)]\n", "NameError",
    ),
    "a forward that raises": (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.nothing\n"
        "def get_inputs():\n    return [torch.rand(2)]\n", "AttributeError",
    ),
}


@pytest.mark.parametrize(("source", "named"), REFERENCES.values(), ids=REFERENCES)
def test_a_reference_that_cannot_be_used_is_named(bench, source, named):
    path = bench.folder / "reference.py"
    path.write_text(source, encoding="utf-8")
    end = bench.end(bench.judge(path, bench.folder / "candidates", "cpu"), 120)
    assert end.code == 2
    assert named in end.err
    assert "reference" in end.err
    assert "Traceback" not in end.err
    assert end.out == ""


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_exit_code_4_with_what_runs_instead(bench, problem):
    end = bench.end(bench.judge(problem, bench.folder / "candidates", "cuda:0"), 120)
    assert end.code == 4
    assert "--device cpu" in end.err
    assert "Traceback" not in end.err


@pytest.mark.parametrize("where", ["a file", "no permission"])
def test_results_that_cannot_be_written_are_noticed_before_anything_is_measured(bench, problem, where):
    out = bench.folder / "a-file" if where == "a file" else Path("/proc/results")
    if where == "a file":
        out.write_text("")
    began = time.monotonic()
    end = bench.run(
        problem, "--device", "cpu", "--config", bench.folder / "tiny.yaml", "--candidates",
        bench.folder / "candidates", "--out", out, timeout_s=120,
    )
    assert end.code == 2
    assert str(out) in end.err
    assert "--out" in end.err
    assert "Traceback" not in end.err
    assert time.monotonic() - began < 60


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_named(bench, problem):
    locked = bench.folder / "locked"
    locked.mkdir(mode=0o555)
    end = bench.run(problem, "--device", "cpu", "--out", locked, timeout_s=120)
    assert end.code == 2
    assert str(locked) in end.err


@pytest.fixture(scope="module")
def as_json(bench, problem):
    """One run with --json and --strict over a right, a wrong and an unusable candidate."""
    return bench.end(bench.judge(problem, bench.folder / "candidates", "cpu", "--json", "--strict"), 200)


@pytest.mark.alone
def test_strict_ends_with_1_when_a_candidate_is_not_ok(as_json):
    assert as_json.code == 1


@pytest.mark.alone
def test_json_is_all_that_stdout_holds_and_stderr_stays_quiet(as_json):
    told = json.loads(as_json.out)
    assert set(told) >= {"csv", "records"}
    assert Path(told["csv"]).is_file()
    by_name = {record["candidate"]: record for record in told["records"]}
    assert by_name["torch_masked"]["status"] == "ok"
    assert by_name["returns_none"]["status"] == "incorrect"
    assert by_name["no_model_new"]["status"] == "build_failed"
    assert by_name["eager"]["role"] == "baseline"
    assert "Traceback" not in as_json.err


def test_what_was_not_measured_is_null_in_json_and_never_zero(as_json):
    by_name = {record["candidate"]: record for record in json.loads(as_json.out)["records"]}
    wrong = by_name["returns_none"]
    assert all(wrong.get(name) is None for name in ("time_us", "speedup", "tflops", "rank", "err_max_u", "watts"))


def test_pandas_reads_the_csv_without_options(as_json):
    import pandas

    table = pandas.read_csv(as_json.csv_path)
    assert set(table["candidate"]) == {"eager", "torch_masked", "returns_none", "no_model_new"}
    assert table["time_us"].dtype == float
    assert table.set_index("candidate")["time_us"].isna().sum() == 2
    assert (table["schema_version"] == 1).all()
    assert len(set(table["run_id"])) == 1
    assert (table["device_kind"] == "cpu").all()
    assert table["sizes"].unique().tolist() == ["M=128"]
    assert not table["sandbox"].isna().any()


def test_every_line_of_the_samples_is_strict_json(as_json):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    lines = as_json.csv_path.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line, parse_constant=refuse) for line in lines]
    assert len(told) == 4
    text = "".join(line for line, each in zip(lines, told) if "torch_masked" in line)
    assert "log_ratios" in text
    assert "candidate_us" in text


def test_results_lie_by_problem_and_device(as_json):
    folder = as_json.csv_path.parent
    assert folder.parent.name == "tril_small"
    assert folder.name.startswith("cpu")


def test_compare_puts_what_run_wrote_beside_the_results_of_another_device(bench, as_json):
    text = as_json.csv_path.read_text(encoding="utf-8")
    (device,) = {row["device_name"] for row in as_json.rows.values()}
    other = bench.folder / "elsewhere" / "another.csv"
    other.parent.mkdir()
    other.write_text(text.replace(device, "Another CPU"), encoding="utf-8")
    for paths in ([as_json.csv_path, other], [as_json.csv_path, other.parent]):
        end = bench.run("compare", *paths, timeout_s=120)
        assert end.code == 0, end.err
        assert all(word in end.out for word in ("torch_masked", "Another CPU", device))


def test_only_and_skip_choose_by_name_and_nothing_left_that_runs_is_exit_code_4(bench, problem):
    end = bench.end(bench.judge(
        problem, bench.folder / "candidates", "cpu", "--only", "no_*", "--only", "returns*", "--skip", "returns_none"
    ), 120)
    assert end.code == 4
    assert set(end.rows) == {"eager", "no_model_new"}
    assert "found class ModelNeww" in end.out
    assert "Traceback" not in end.err


def test_list_and_doctor_answer(bench):
    listed = bench.run("list", timeout_s=60)
    assert listed.code == 0
    assert "tril_matmul" in listed.out
    assert json.loads(bench.run("list", "--json", timeout_s=60).out)["problems"]
    doctor = bench.run("doctor", timeout_s=120)
    assert doctor.code in (0, 1)
    assert "Traceback" not in doctor.err
    assert "torch" in doctor.out.lower()


@pytest.mark.alone
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_its_results_and_nothing_else(new_bench, how):
    bench = new_bench(f"interrupted-{how.name}")
    bench.candidates([CORPUS / "machine" / "hang_leaves_child.py", CORPUS / "form" / "no_model_new.py"])
    process = bench.judge(bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu")
    for line in process.stderr:
        if "hang_leaves_child: checking" in line:
            break
    time.sleep(0.5)
    process.send_signal(how)
    end = bench.end(process, 60)
    assert end.code == 130
    assert f"interrupted; what was measured so far is in {end.results}" in end.err
    assert "Traceback" not in end.err
    assert end.rows["eager"]["status"] == "ok"
    deadline = time.monotonic() + 10
    while bench.left_behind() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert bench.left_behind() == []


def test_a_run_that_is_killed_takes_its_workers_with_it(new_bench):
    bench = new_bench("killed")
    bench.candidates([CORPUS / "machine" / "hang_leaves_child.py"])
    process = bench.judge(bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu")
    for line in process.stderr:
        if "hang_leaves_child: checking" in line:
            break
    time.sleep(0.5)
    process.kill()
    bench.end(process, 60)
    deadline = time.monotonic() + 10
    while any("python" in each for each in bench.left_behind()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [each for each in bench.left_behind() if "python" in each or "sleep" in each]


@pytest.mark.parametrize("device", [["cpu"], ["auto", "--devices", "cpu,cpu"]])
def test_who_waits_no_longer_than_he_wants_to_is_told_for_whom_and_has_built_meanwhile(bench, problem, device):
    folder = bench.temp / "kernel-referee-locks"
    folder.mkdir(exist_ok=True)
    results = set(bench.folder.rglob("*.csv"))
    with Lock(folder / "cpu.lock", for_all=True):
        end = bench.end(bench.judge(problem, bench.folder / "candidates", *device, "--wait", "0.1"), 120)
    assert end.code == 4 and end.out == ""
    assert set(bench.folder.rglob("*.csv")) == results
    *_, told, gave_up = end.err.splitlines()
    assert f"another run (process {os.getpid()} of " in told and " since " in told
    assert "still has this CPU after 0.1 s" in gave_up and "--wait SECONDS" in gave_up
    assert device != ["cpu"] or "building" in end.err.partition("another run")[0]
