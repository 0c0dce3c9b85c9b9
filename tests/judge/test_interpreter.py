"""What Triton's interpreter is given, and what of its failures is the candidate's: with a worker that follows a script."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from harness.judge import interpreter
from harness.judge.interpreter import interpret
from harness.judge.judgement import Judgement, Prepared
from harness.judge.references import small_references
from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status

HERE = "/candidates/mine.py"


@pytest.fixture
def prepared(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\nassert x.device.type == 'cuda'\nassert x.dim() == 2\n", encoding="utf-8")
    return Prepared("mine", str(path), {}, (), None, "fp32", "triton", stand_in_gpu={})


@pytest.fixture
def interpreted(child, cpu_backend, settings, prepared, reference_of):
    """`interpreted(script)`: the judgement and the verdict on a worker that follows `script` at two sizes; or Failed."""

    def make(script, sizes=(4, 16)):
        judgement = Judgement()
        references = [reference_of(sizes={"M": size}) for size in sizes]
        verdict = interpret(
            cpu_backend, prepared, lambda: child(script), references, 1, settings, judgement, lambda text: None
        )
        return judgement, verdict

    return make


def raise_in_call(far, words):
    """Try one launch that raises."""
    first = far.hear()["first"]
    far.begin(first)
    far.say({"turn": first + 1})
    far.say({"queued": 1})
    far.say({"launched": [{"raised": words}], "end_to_end_us": 1.0})


def raising(type_="ValueError", message="no", where=f"{HERE}:3", innermost=None, in_kernel=False):
    """A worker whose first call raises."""
    frames = [where, innermost or where]
    words = {"type": type_, "message": message, "where": where, "frames": frames, "in_kernel": in_kernel}

    def script(far):
        far.make_ready()
        raise_in_call(far, words)
        far.stay()

    return script


def skipped(interpreted, script):
    """The reason of a row that nothing is held against."""
    with pytest.raises(Failed) as caught:
        interpreted(script)
    verdict = caught.value.verdict
    assert (verdict.status, verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU), verdict
    assert caught.value.evidence is None
    return verdict.reason


def test_the_sizes_are_the_small_ones_of_the_problem_in_order_also_those_that_are_too_large_to_be_timed(reference_of):
    sizes = ({"M": 300}, {"M": 5}, {"M": 64}, {"M": 600})
    timed = reference_of(sizes={"M": 64}, check_sizes=sizes)
    found = small_references([timed], 8 << 30)
    assert [each.sizes["M"] for each in found] == [5, 16, 64, 300]
    assert found[2] is timed and {each.seed for each in found} == {timed.seed}
    assert 3 * 300**2 <= interpreter.MOST_ELEMENTS < 3 * 600**2


def test_a_problem_without_a_small_size_is_skipped_with_the_way_to_one(interpreted):
    with pytest.raises(Failed) as caught:
        interpreted(lambda far: None, sizes=())
    assert (caught.value.verdict.status, caught.value.verdict.reason_code) == (Status.SKIPPED, ReasonCode.NO_GPU)
    assert "524,288 elements" in caught.value.verdict.reason and "--sizes" in caught.value.verdict.reason


@pytest.mark.parametrize("script", [
    raising("TypeError", "expected a tensor", innermost=f"{Path(numpy.__file__).parent}/core.py:9"),
    raising("AttributeError", "'int' object has no attribute 'to'", in_kernel=True),
    raising("NotImplementedError", "", in_kernel=True),
    raising("AssertionError", "Torch not compiled with CUDA enabled"),
    raising("ValueError", "x must be a CUDA tensor"),
    raising("AssertionError", "", where=f"{HERE}:2"),
], ids=["inside the interpreter", "a value that is no tensor", "not implemented", "no CUDA", "its words", "its line"])
def test_what_takes_a_gpu_or_a_compiler_for_one_is_skipped_and_says_what_was_raised(interpreted, script):
    reason = skipped(interpreted, script)
    assert reason.startswith("Triton's interpreter could not run it (raised ") and "mine.py" in reason


@pytest.mark.parametrize("script", [
    raising("NameError", "name 'rowz' is not defined", in_kernel=True),
    raising("AttributeError", "'NoneType' object has no attribute 'shape'"),
    raising("AttributeError", "module 'triton.language' has no attribute 'whre'", in_kernel=True),
    raising("AssertionError", ""),
    raising("IndexError", "out of range", where="/elsewhere/other.py:2"),
], ids=["in the kernel", "beside it", "a name that the language has not", "an assert of its own", "another file"])
def test_what_it_would_raise_anywhere_is_incorrect(interpreted, script):
    with pytest.raises(Failed) as caught:
        interpreted(script)
    assert (caught.value.verdict.status, caught.value.verdict.reason_code) == (Status.INCORRECT, ReasonCode.RAISED)


def test_one_that_refuses_every_size_is_skipped_and_each_refusal_is_named(interpreted):
    words = {"type": "ValueError", "message": "M must be a multiple of 128", "where": f"{HERE}:3", "frames": [f"{HERE}:3"]}

    def script(far):
        far.make_ready()
        raise_in_call(far, words)
        for op in ("open", "layout"):
            assert far.hear()["op"] == op
            far.say({"opened": True})
        raise_in_call(far, words)
        far.stay()

    reason = skipped(interpreted, script)
    assert "M=4 (raised ValueError: M must be a multiple of 128" in reason and "M=16 (raised" in reason


def test_a_call_that_does_not_end_in_time_is_nobodys_fault(interpreted):
    def script(far):
        far.make_ready()
        far.begin(far.hear()["first"])
        far.stay()

    assert skipped(interpreted, script).startswith("Triton's interpreter did not get through a call at M=4")


def test_wrong_values_and_a_death_are_what_they_are_anywhere(interpreted):
    def wrong(far):
        far.make_ready()
        far.launches(1)
        far.stay()

    for script, status in ((wrong, Status.INCORRECT), (lambda far: far.make_ready(), Status.CRASHED)):
        with pytest.raises(Failed) as caught:
            interpreted(script)
        assert caught.value.verdict.status is status


def test_its_limits_are_those_of_the_page_on_builds():
    page = (Path(__file__).resolve().parents[2] / "docs" / "design" / "builds.md").read_text(encoding="utf-8")
    assert f"{interpreter.MOST_ELEMENTS:,} elements or fewer" in page
    assert f"After {interpreter._BUDGET_S:.0f} s no further size" in page
