"""Suites and --resume on real nodes of several models, whose actors pretend to judge."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import fake_actor
import pytest
from fake_actor import FakeActor, fake_build, fake_toolchain
from listening import Listening

from harness.cli.flags import understood
from harness.model.candidate import read_candidate
from harness.model.errors import DeviceBusy, HarnessError
from harness.model.paths import REPOSITORY
from harness.results.reader import read_records
from harness.runs.cluster import builds, ray_executors, run
from harness.runs.cluster.link import Link
from harness.runs.suite import sequence
from harness.runs.suite.problems import Loaded
from harness.runs.suite.sequence import Suite, each_judged
from harness.runs.suite.summary import scores

pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]
SOURCE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, A, B):\n        return A\n"
DRIVER = """
import sys
sys.path[:0] = {path!r}
import ray
ray.init(address={address!r}, log_to_driver=False, logging_level="error", namespace="kernel-referee")
import fake_actor
ray.cloudpickle.register_pickle_by_value(fake_actor)
from pathlib import Path
from dataclasses import replace
from harness.cli.flags import understood
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.report.progress import Progress
from harness.runs.cluster import builds, run
from harness.runs.cluster.link import Link
builds.toolchain_here = fake_actor.fake_toolchain
corpus = Path({corpus!r})
problem = replace(load_problem(corpus / "tril_small.yaml", corpus), name="one", check_sizes=({{"M": 31}},), cpu_sizes={{"M": 64}})
asked = RunRequest(problem, [read_candidate(Path(each)) for each in {candidates!r}], "cuda", load_settings({settings!r}), Path({out!r}))
run.run(asked, Link("cuda", None, fake_actor.FakeActor, fake_actor.fake_build), Progress(sys.stderr))
"""


@pytest.fixture(autouse=True)
def _pretended(monkeypatch):
    import ray

    ray.cloudpickle.register_pickle_by_value(fake_actor)
    monkeypatch.setattr(builds, "toolchain_here", fake_toolchain)
    for module in (ray_executors, sequence):
        monkeypatch.setattr(module, "_POLL_S", 0.3)


@pytest.fixture
def untold_for_a_second(monkeypatch):
    monkeypatch.setattr(ray_executors, "_UNTOLD_S", 1.0)


def link_to(model=None) -> Link:
    return Link("cuda", model, actor=FakeActor, build=fake_build)


@pytest.fixture
def candidates_of(tmp_path):
    """`candidates_of({name: text})`: candidates that end in this text."""

    def make(sources):
        for name, text in sources.items():
            (tmp_path / f"{name}.py").write_text(SOURCE + text)
        return [read_candidate(tmp_path / f"{name}.py") for name in sources]

    return make


@pytest.fixture
def outcomes_of(request_for, candidates_of, tmp_path):
    """`outcomes_of({problem: {candidate: text}}, model)`: the outcomes of a suite, as they come, by the problem's name."""

    def judged(problems, model=None, when=lambda outcome: None, wait_s=None, devices=(), meanwhile=lambda: None):
        asked = request_for([])
        loaded = [Loaded(Path(name), replace(asked.problem, name=name)) for name in problems]
        chosen = {Path(name): candidates_of(sources) for name, sources in problems.items()}
        words = ["suite", str(asked.problem.path), "--out", str(asked.out_dir), "--json"]
        words += [] if wait_s is None else ["--wait", str(wait_s)]
        suite = Suite(understood(words), asked.settings, devices, on_all=True)
        found = {}
        judges = run.judges_for(link_to(model), len(loaded), silent=True)

        def more():
            meanwhile()
            return judges()

        for outcome in each_judged(loaded, chosen, suite, (), lambda text: None, more):
            found[outcome.name] = outcome
            when(outcome)
        return found

    return judged


@contextmanager
def added(nodes, *models, **versions):
    """Nodes of these models, until the end."""
    made = [nodes.add(each, **versions) for each in models]
    try:
        yield made
    finally:
        for each in made:
            nodes.remove(each)


@contextmanager
def held(model):
    """A GPU of this model, which another command has until the end or until the event that this gives is set."""
    ends, has_it = threading.Event(), threading.Event()

    def hold():
        with ray_executors.RayExecutors(link_to(model)) as places:
            while not places.open:
                places.hear(0.2)
            has_it.set()
            ends.wait(120)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert has_it.wait(60)
    try:
        yield ends
    finally:
        ends.set()
        holder.join(60)


def rows_of(outcome) -> dict[str, set[str]]:
    """The names of the candidates by the model that judged them; each has a file of its own."""
    assert len({each.path for each in outcome.results}) == len(outcome.results)
    return {
        each.device_name: {record.candidate for record in each.records if record.role == "candidate"}
        for each in outcome.results
    }


def test_each_problem_of_a_suite_is_judged_on_every_model(nodes, outcomes_of):
    found = outcomes_of({"one": {"a": "", "b": ""}, "two": {"c": ""}})
    assert rows_of(found["one"]) == {"H100": {"a", "b"}, "A100": {"a", "b"}}
    assert rows_of(found["two"]) == {"H100": {"c"}, "A100": {"c"}}
    assert {each.device_name: each.of_candidates.n for each in scores(list(found.values()))} == {"H100": 3, "A100": 3}


def test_after_a_killed_driver_each_model_judges_what_it_has_no_row_of(nodes, outcomes_of, candidates_of, request_for, tmp_path):
    """One model's judge says nothing more of its second candidate, and the other model judges all; then the driver is killed."""
    met = tmp_path / "met"
    sources = {"a": "", "b": f"# first: {met}", "c": ""}
    paths = [str(each.path) for each in candidates_of(sources)]
    out = request_for([]).out_dir
    program = DRIVER.format(
        path=[str(REPOSITORY), str(REPOSITORY / "tests" / "fakes")], address=nodes.cluster.address, candidates=paths, out=str(out),
        corpus=str(REPOSITORY / "tests" / "adversarial"), settings=str(REPOSITORY / "configs" / "selftest.yaml"),
    )
    driver = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
    told, late = [], threading.Timer(90, driver.kill)
    late.start()
    for line in driver.stderr:
        told.append(line)
        if sum(": ok" in each and any(f" {name}:" in each for name in sources) for each in told) == 4:
            driver.send_signal(signal.SIGKILL)
            break
    driver.wait()
    late.cancel()
    before = rows_in(out)
    assert sorted(Counter(device for device, _ in before).values()) == [1, 3], "".join(told)

    devices = run.identities(link_to(), Listening())
    found = outcomes_of({"one": sources}, devices=devices)["one"]
    assert rows_of(found) == {"H100": {"a", "b", "c"}, "A100": {"a", "b", "c"}}
    assert found.kept == 4
    after = {(each.device_name, record.candidate): record.run_id for each in found.results for record in each.records}
    assert {key: after[key] for key in before} == before


def rows_in(folder: Path) -> dict[tuple[str, str], str]:
    """The runs of the candidates' rows below `folder`, by the device and the candidate."""
    records = [record for path in folder.rglob("*.csv") for record in read_records(path)]
    return {(each.device_name, each.candidate): each.run_id for each in records if each.role == "candidate"}


def test_another_pytorch_has_a_table_of_its_own_and_another_driver_has_not(nodes, candidates_of, request_for):
    told = Listening()
    with added(nodes, "B200"), added(nodes, "B200", TORCH="1"), added(nodes, "B200", DRIVER="570"):
        asked = request_for([], candidates=candidates_of({"a": "", "b": ""}))
        results = run.run(asked, link_to("B200"), told)
    assert {each.records[0].torch: {record.candidate for record in each.records if record.role == "candidate"}
            for each in results} == {"2": {"a", "b"}, "1": {"a", "b"}}
    assert len(results) == len({each.csv_path for each in results}) == 2
    notes = "\n".join(told.notes)
    assert "torch" in notes and "its rows have a table of their own" in notes
    assert "driver" in notes and "each row names its driver" in notes


def test_rows_of_one_pytorch_are_not_kept_for_another(nodes, outcomes_of):
    sources = {"one": {"a": "", "b": ""}}
    with added(nodes, "B200"):
        outcomes_of(sources, "B200")
        with added(nodes, "B200", TORCH="1"):
            devices = run.identities(link_to("B200"), Listening())
            found = outcomes_of(sources, "B200", devices=devices)["one"]
    assert {each.records[0].torch: each.kept for each in found.results} == {"2": 2, "1": 0}
    for each in found.results:
        versions = {(record.candidate, record.torch) for record in read_records(each.path) if record.role == "candidate"}
        assert versions == {(name, each.records[0].torch) for name in "ab"}


def test_a_device_that_another_command_has_costs_a_suite_nothing_but_that_device(nodes, outcomes_of, untold_for_a_second):
    with added(nodes, "B200"), held("B200"), added(nodes, "B200"):
        found = outcomes_of({"one": {"a": ""}, "two": {"b": ""}, "three": {"c": ""}}, "B200", wait_s=100)
    assert [rows_of(found[name]) for name in ("one", "two", "three")] == [{"B200": {name}} for name in "abc"]


def test_where_other_commands_have_all_devices_each_problem_says_so_and_the_suite_goes_on(nodes, outcomes_of, untold_for_a_second):
    with held("H100"):
        found = outcomes_of({"one": {"a": ""}, "two": {"b": ""}}, "H100", wait_s=1)
    assert all("other jobs of the cluster have all" in each.fault for each in found.values()) and len(found) == 2


def test_the_last_problem_waits_no_longer_for_two_devices_in_turn_than_for_one(nodes, outcomes_of, untold_for_a_second):
    with added(nodes, "B200", "B200"), held("B200"):
        found = outcomes_of({name: {"a": ""} for name in ("one", "two", "three")}, "B200", wait_s=1)
    assert all("other jobs of the cluster have all" in each.fault for each in found.values()) and len(found) == 3


def test_a_node_that_joins_takes_part_in_a_suite(nodes, outcomes_of, tmp_path):
    """The only device is at a candidate of which nothing more is heard, until the other problem has been judged."""
    sources = {"one": {"a": f"# first: {tmp_path / 'met'}"}, "two": {"b": ""}}
    there = [nodes.add("B200")]

    def join():
        if (tmp_path / "met").exists() and len(there) == 1:
            there.append(nodes.add("B200"))

    def lose(outcome):
        if outcome.name == "two":
            nodes.remove(there[0])

    try:
        found = outcomes_of(sources, "B200", lose, meanwhile=join)
    finally:
        nodes.remove(there[-1])
    assert rows_of(found["one"]) == {"B200": {"a"}} and rows_of(found["two"]) == {"B200": {"b"}}


def test_a_run_says_which_model_it_went_on_without(nodes, candidates_of, request_for, untold_for_a_second):
    told = Listening()
    with held("A100"):
        [result] = run.run(request_for([], candidates=candidates_of({"a": ""})), link_to(), told)
    assert {record.device_name for record in result.records} == {"H100"}
    assert "nothing was judged on A100: other jobs have it" in "\n".join(told.notes)


def test_a_device_with_another_version_of_this_software_costs_no_problem_of_a_suite(nodes, outcomes_of):
    with added(nodes, "B200", HASH="another"), added(nodes, "B200"):
        found = outcomes_of({"one": {"a": ""}, "two": {"b": ""}}, "B200")
    assert [rows_of(found[name]) for name in ("one", "two")] == [{"B200": {"a"}}, {"B200": {"b"}}]


def test_what_is_kept_is_known_as_soon_as_a_device_comes_free(nodes, monkeypatch, untold_for_a_second):
    monkeypatch.setattr(run, "_PATIENCE_S", 0.5)
    with held("H100") as ends:
        told = Listening()
        monkeypatch.setattr(told, "note", lambda text: ends.set() if "held by other jobs: waiting" in text else None)
        [device] = run.identities(link_to("H100"), told, 100)
    assert device.name == "H100" and device.uuid is None
    with held("H100"), pytest.raises(DeviceBusy, match="after 1 s.*--wait"):
        run.identities(link_to("H100"), Listening(), 1)


def test_a_judge_that_cannot_open_its_device_is_named_where_devices_are_asked_for(nodes, monkeypatch):
    monkeypatch.setattr(ray_executors, "harness_hash", lambda: "another")
    with pytest.raises(HarnessError, match="has another version of this software"):
        run.identities(link_to("H100"), Listening(), 5)
