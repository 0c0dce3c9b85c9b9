"""Which stopwatch timed a row, through the real command line, also where no compiler built ours, and beside which eager.
"""

from __future__ import annotations

import shutil

import pytest

CANDIDATE = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)
"""
WALLS = "bwrap", "unshare"
ON_GPU = pytest.mark.gpu

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.mark.parametrize(
    ("device", "has_compiler", "timer"),
    [
        ("cpu", True, "monotonic"),
        pytest.param("cuda:0", True, "native_events", marks=ON_GPU),
        pytest.param("cuda:0", False, "torch_events", marks=ON_GPU),
    ],
    ids=["cpu", "gpu", "gpu without a compiler"],
)
def test_the_row_names_the_stopwatch_that_timed_it(new_bench, device, has_compiler, timer):
    bench = new_bench("stopwatches")
    folder = bench.candidates([])
    (folder / "plain.py").write_text(CANDIDATE, encoding="utf-8")
    if not has_compiler:
        tools = bench.folder / "tools"
        tools.mkdir()
        for name in WALLS:
            if program := shutil.which(name):
                (tools / name).symlink_to(program)
        bench.environment.update(CXX="/nowhere/c++", PATH=str(tools))
    ended = bench.end(bench.judge(bench.folder / "tril_small.yaml", folder, device))
    assert ended.code == 0, ended.err[-2000:]
    for name in ("eager", "plain"):
        row = ended.rows[name]
        assert row["status"] in ("ok", "unsure"), row["reason"]
        assert (row["timer"], float(row["time_us"]) > 0) == (timer, True)


@pytest.mark.gpu
def test_where_tf32_is_on_the_eager_beside_is_strict(new_bench):
    """A product of 2048 takes a fifth of eager's time with TF32."""
    bench = new_bench("beside-tf32")
    folder = bench.candidates([])
    with_tf32 = CANDIDATE.replace("import torch", "import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = True", 1)
    (folder / "with_tf32.py").write_text(with_tf32, encoding="utf-8")
    problem = bench.folder / "tril_small.yaml"
    strict = problem.read_text(encoding="utf-8")
    assert strict.count("class: fp32") == 1
    problem.write_text(strict.replace("class: fp32", "class: tf32"), encoding="utf-8")
    ended = bench.end(bench.judge(problem, folder, "cuda:0", "--sizes", "M=2048"))
    row = ended.rows["with_tf32"]
    assert row["status"] == "ok", row["reason"]
    assert float(row["time_us"]) < 0.5 * float(row["baseline_us"])
    assert abs(float(row["baseline_inside_us"]) / float(row["baseline_us"]) - 1) < 0.03


@pytest.mark.gpu
def test_a_call_of_many_kernels_is_queued_ahead_in_shorter_segments(new_bench):
    """Seventeen calls of seventy kernels and more are too many for a stream; one that synchronises fits in no queue."""
    bench = new_bench("many-kernels")
    folder = bench.candidates([])
    result = "torch.tril(A @ B)"
    bodies = {
        "few": f"return {result}",
        "many": f"C = {result}\n        for _ in range(70):\n            C = -C\n        return C",
        "synchronises": f"C = {result}\n        torch.cuda.current_stream().synchronize()\n        return C",
    }
    for name, body in bodies.items():
        source = CANDIDATE.replace(f"return {result}", body)
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    ended = bench.end(bench.judge(bench.folder / "tril_small.yaml", folder, "cuda:0"))
    assert ended.code == 0, ended.err[-2000:]
    for name in bodies:
        row = ended.rows[name]
        # One that synchronises has the host's time in its own, by which it may be too uneven to be known.
        assert row["status"] in (("ok", "unsure") if name == "synchronises" else ("ok",)), (name, row["reason"])
        assert (row["launch_hidden"] == "true") == (name != "synchronises"), name
    assert float(ended.rows["many"]["time_us"]) > 2 * float(ended.rows["few"]["time_us"])
