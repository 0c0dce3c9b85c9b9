"""Honest kernels: each has a problem and is a candidate; their twins on the CPU are within the bounds of the rule."""

from __future__ import annotations

import ast
import types

import pytest
import torch

from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.protocol import tree
from harness.reference.accuracy.classes import within
from harness.reference.error_figures import judge_outputs
from harness.reference.reference_model import Reference

HONEST = REPOSITORY / "benchmarks" / "honest"
KERNELS = sorted(HONEST.glob("*/*.py"))
TWINS = [path for path in KERNELS if path.stem.endswith("_torch")]
LOSSES = sorted(path.stem for path in HONEST.glob("*.py") if path.stem.endswith("_loss") or path.stem == "kl_divergence")
_SEED = 7


@pytest.fixture(scope="module")
def benchmark(benchmark_named):
    return benchmark_named("honest_kernels")


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


def test_there_are_seven_losses_and_twenty_operators_more_each_with_a_kernel_in_cuda(benchmark):
    kernels = {task.key: task.candidates for task in benchmark.honest_tasks(is_cpu=False)}
    assert len(LOSSES) == 7 and all(len(kernels[name]) == 2 for name in LOSSES)
    assert len(kernels) - len(LOSSES) >= 20 and all(kernels.values())
    assert all(task.candidates for task in benchmark.honest_tasks(is_cpu=True))


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_each_kernel_is_a_candidate_of_a_problem_that_is_there(path):
    candidate = read_candidate(path)
    assert candidate.fault is None
    assert candidate.language == ("torch" if path in TWINS else "cuda")
    assert load_problem(path.parent.with_suffix(".py"), path.parent).candidates_dir == path.parent
    if path in TWINS:
        assert (path.parent / f"{path.stem.removesuffix('_torch')}.py").exists(), "a twin of no kernel"


@pytest.mark.parametrize("path", [path for path in KERNELS if path not in TWINS], ids=name_of)
def test_each_cuda_kernel_uses_the_current_stream_and_looks_at_its_arguments_and_launches(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("<<<") == source.count("C10_CUDA_KERNEL_LAUNCH_CHECK();") >= 1
    assert "getCurrentCUDAStream()" in source and "CUDAGuard guard(" in source and "TORCH_CHECK(" in source
    assert f'name="honest_{path.parent.name}_{path.stem}"' in source, "names of extensions must differ"


@pytest.mark.parametrize("path", TWINS, ids=name_of)
def test_each_twin_is_within_what_the_rule_allows_at_the_small_sizes(benchmark, path, tmp_path):
    task = benchmark.HonestTask(path.parent.name, path.parent.with_suffix(".py"), (path.stem,))
    problem_path, files = task.prepared(tmp_path, is_cpu=True)
    reference = Reference(load_problem(problem_path), {}, torch.device("cpu"), _SEED)
    module = types.ModuleType(path.stem)
    exec(compile(files[path.stem].read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    torch.manual_seed(_SEED)
    model = module.ModelNew(*reference.init)
    assert {name: each.shape for name, each in model.state_dict().items()} == {
        name: each.shape for name, each in reference.state.items()
    }
    inputs = reference.draw(seed=_SEED)
    with torch.no_grad():
        _, outputs = tree.flatten(model(*inputs.arguments()))
    figures = judge_outputs(reference, inputs, reference.truth(inputs), outputs, "fp32")
    assert within(figures), f"{figures.max_u:.3g} u of {figures.bounds.max_u:.3g}, eager {figures.eager_max_u:.3g} u"


@pytest.mark.parametrize("path", sorted(HONEST.glob("*.py")), ids=lambda path: path.stem)
def test_the_small_sizes_are_sizes_of_the_problem(benchmark, path):
    source = path.read_text(encoding="utf-8")
    small = benchmark.at_cpu_sizes(source)
    names = {node.targets[0].id: node.value for node in ast.parse(small).body if isinstance(node, ast.Assign)}
    sizes = ast.literal_eval(names.pop("CPU_SIZES"))
    assert {name: ast.literal_eval(names[name]) for name in sizes} == sizes


def test_a_problem_that_is_not_there_is_named(benchmark):
    with pytest.raises(InputError, match="--only softmin: there is no such problem"):
        benchmark.honest_tasks(True, ["softmin"])
