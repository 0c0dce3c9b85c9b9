"""A problem judged in each step of memory, through the real command line on a CPU that `memory_gb` makes small."""

from __future__ import annotations

from textwrap import dedent

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]

RIGHT = ("ok", "unsure")  # a busy CPU leaves some rows without a time that can be believed
REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.rand(4096, 1024)]


def get_init_inputs():
    return []
"""
ROWS, MIXED = "torch.relu(x - 0.5) * 2", "(x - x.mean(0)) * 2"  # of these only the rows can be cut
HONEST = {ROWS: "torch.clamp(x - 0.5, min=0) * 2", MIXED: "2 * x - 2 * x.mean(0)"}
# A call has 17 MB of inputs and as many of outputs.
STEPS = {
    "fewer_launches": (MIXED, 700, None), "one_launch": (MIXED, 300, "one launch at a time"),
    "slices": (ROWS, 200, "expected outputs in"), "host": (MIXED, 150, "outputs in host memory"),
}


@pytest.fixture(scope="module")
def judged(new_bench):
    """`judged(step)`: how the run ended in which the problem has so much memory."""
    def run(step: str):
        bench = new_bench(f"memory-{step}")
        result, megabytes, _ = STEPS[step]
        (bench.folder / "whole.py").write_text(REFERENCE.format(result=result), encoding="utf-8")
        mine = bench.candidates((), "mine")
        for name, returned in {"honest": HONEST[result], "scaled": f"({result}) * 1.001", "zeros": "torch.zeros_like(x)"}.items():
            text = REFERENCE.replace("Model", "ModelNew").format(result=returned)
            (mine / f"{name}.py").write_text(text, encoding="utf-8")
        wrong_at_the_end = dedent(f"""
            import torch

            class ModelNew(torch.nn.Module):
                def forward(self, x):
                    made = {HONEST[result]}
                    made[-1, -1] += 1
                    return made
        """)
        (mine / "last_element.py").write_text(wrong_at_the_end, encoding="utf-8")
        settings = bench.settings()
        with settings.open("a", encoding="utf-8") as file:
            file.write(f"memory_gb: {megabytes / 1000}\n")
        return bench.end(bench.judge(bench.folder / "whole.py", mine, "cpu", "--baselines", "eager"))

    return run


@pytest.mark.parametrize("step", STEPS)
def test_each_step_has_the_verdicts_of_the_others_and_is_told_in_its_column_and_in_a_line(judged, step):
    ended = judged(step)
    assert ended.code == 0, ended.err[-2000:]
    assert {row["memory_step"] for row in ended.rows.values()} == {step}
    for name in ("eager", "honest"):
        assert ended.rows[name]["status"] in RIGHT, ended.rows[name]["reason"]
    for name in ("zeros", "last_element"):
        assert ended.rows[name]["status"] == "incorrect", ended.rows[name]["reason"]
    assert ended.rows["scaled"]["status"] == "imprecise"
    told = STEPS[step][2]
    if told is not None and ended.rows["honest"]["status"] == "ok":
        assert f"memory was short: {told}" in " ".join(ended.out.split()) or told in ended.rows["honest"]["warnings"]
