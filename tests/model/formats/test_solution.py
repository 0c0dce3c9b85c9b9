"""Solutions of a definition written as candidates, with their own text unchanged."""

from __future__ import annotations

import json

import pytest

from harness.model.candidate import read_candidate
from harness.model.problem import load_problem

RIGHT = "import torch\n\ndef run(a, b, factor, both, total):\n    torch.sum(a, dim=1, out=total)\n"


def read(traced, path):
    return read_candidate(path, form=load_problem(traced.write()).form)


def test_the_lines_of_a_python_solution_are_the_candidates_first(traced, tmp_path):
    candidate = read(traced, traced.solution("mine", RIGHT))
    assert candidate.fault is None and candidate.source.startswith(RIGHT)
    copy = candidate.file_in(tmp_path)
    assert copy.name == "mine.py" and copy.read_text() == candidate.source


def test_cpp_keeps_the_lines_of_each_of_its_files(traced):
    files = {"main.cpp": '#include <torch/extension.h>\n#include "inc/a.h"\nvoid run() {}\n', "inc/a.h": "#pragma once\nint a;\n"}
    candidate = read(traced, traced.solution("mine", files, languages=["cuda_cpp"]))
    assert candidate.language == "cpp" and candidate.fault is None
    text = candidate.source.partition("cpp_sources=[")[2]
    assert '#line 1 "inc/a.h"\\n\\nint a;\\n\\n#line 3 "main.cpp"\\nvoid run() {}' in text
    assert "functions=['run']" in text and "'void run();'" in text


def test_cuda_comes_with_the_flags_that_its_compile_options_have(traced):
    files = {"kernel.cu": "void run(torch::Tensor a) {}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"run\", &run); }"}
    candidate = read(traced, traced.solution("mine", files, languages=["cuda_cpp"], compile_options={"cflags": ["-O1"]}))
    assert candidate.language == "cuda" and "functions=" not in candidate.source
    assert "extra_cflags=['-O1']" in candidate.source and "extra_cuda_cflags=['-O3', '--use_fast_math']" in candidate.source


CU = {"kernel.cu": "struct Kernel {};\n"}
REFUSED = {
    "an entry point": (RIGHT, {"entry_point": "kernel.py"}, "'spec.entry_point' is 'kernel.py'. Write it as kernel.py::run"),
    "the entry's file": (RIGHT, {"entry_point": "main.py::run"}, "'spec.entry_point' is in main.py, which 'sources' has not"),
    "one language": ({"kernel.py": RIGHT, **CU}, {}, "has kernel.cu beside kernel.py, and a Python solution is one file"),
    "one file": ({"kernel.py": RIGHT, "a.py": "A = 1"}, {}, "has a.py beside kernel.py, and a Python solution is one file"),
    "PyTorch's binding": (CU, {"language": "cuda"}, "is bound by tvm-ffi, which cannot be run"),
    "what can be bound": (CU, {}, "has no PYBIND11_MODULE, and no function run that can be bound"),
    "a path of its own": ({"kernel.py": RIGHT, "../up.py": ""}, {}, "'sources[1].path' is '../up.py'"),
    "Python": ("import torch\ndef run(:\n", {}, "mine.json:2: Python cannot read this"),
}


@pytest.mark.parametrize("lacking", REFUSED)
def test_a_solution_that_lacks_something_has_a_fault_in_words(traced, lacking):
    content, spec, says = REFUSED[lacking]
    assert says in read(traced, traced.solution("mine", content, **spec)).fault


def test_a_solution_that_is_no_json_has_its_row_with_the_line(traced):
    path = traced.solution("mine", RIGHT)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1)[:-1])
    assert "is no JSON" in read(traced, path).fault
    assert load_problem(traced.write()).form.holds(path)
