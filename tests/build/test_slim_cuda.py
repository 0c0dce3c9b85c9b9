"""CUDA launchers of the corpus compile with the stand-in for PyTorch's headers, to the machine code of the stock ones.

The corpus in tests/fixtures/launchers is written as language models write launchers for KernelBench.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from harness.build import slim
from harness.build.environment import find_toolchain
from harness.verdict import Status

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

from harness.build import compile_only

LAUNCHERS = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
CUDA = sorted(path.stem for path in LAUNCHERS.glob("*.py") if not path.stem.startswith(("cpp_", "needs_stock")))
SOURCE = "#include <torch/extension.h>\n"

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(find_toolchain(None).nvcc_path is None, reason="there is no nvcc"),
]


@pytest.mark.parametrize("name", CUDA)
def test_a_cuda_launcher_compiles_with_it(name, workshop):
    (build,) = workshop.build(workshop.write(name, (LAUNCHERS / f"{name}.py").read_text()))
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    assert build.headers == "slim", build.log[-2000:]
    assert build.kernels


def sources_of(name):
    """The CUDA and the C++ text of a launcher."""
    values = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse((LAUNCHERS / f"{name}.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    return values["CUDA_SOURCE"], values["CPP_SOURCE"]


def test_the_machine_code_is_that_of_a_build_with_the_stock_headers(tmp_path):
    # Two launchers as one source: the stock headers take nvcc far longer to read than they do. And without the bindings
    # to Python, which are most of the reading and of no kernel's concern.
    cuda, cpp = zip(*map(sources_of, ("cumsum_scan", "wmma_bf16")))
    cuda = [text.replace("<torch/extension.h>", "<torch/types.h>") for text in cuda]
    made = []
    for headers in ("slim", "stock"):
        place = tmp_path / "place"  # the same for both: a kernel's symbol may hold the name of its file
        place.mkdir()
        arguments = {"name": "together", "cuda_sources": cuda}
        if headers == "slim":
            assert slim.write(tmp_path / "slim", TORCH_INCLUDE, [SOURCE, *cpp], cuda)
            arguments["extra_include_paths"] = [str(tmp_path / "slim")]
        came = compile_only.compile_cuda("load_inline", arguments, place, find_toolchain(None).nvcc_path, ["sm_90a"])
        assert came.passed, came.log
        made.append((place / "0.sm_90a.cubin").read_bytes())
        shutil.rmtree(place)
    assert made[0] == made[1]
    assert b"cumsum" in made[0] and b"wmma" in made[0]
