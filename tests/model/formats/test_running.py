"""Definitions and tasks through the real command line on a CPU: right ones pass, wrong ones do not, faults are sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]

REPOSITORY = Path(__file__).resolve().parents[3]
RIGHT = ("ok", "unsure")  # a busy CPU leaves some rows without a time that can be believed

WRITES = """\
import torch


def run(a, b, factor, both, total):
    torch.add(a, b, out=both[:, :64])
    torch.mul(a, factor, out=both[:, 64:])
    torch.sum(a, dim=1, out=total)
"""
RETURNS = """\
import torch


def run(a, b, factor):
    return torch.cat([a + b, a * factor], dim=1), a.sum(dim=1)
"""
RAISES = "import torch\n\n\ndef run(a, b, factor, both, total):\n    raise ValueError(f'no rows in {a.shape}')\n"
CPP = {
    "main.cpp": """\
#include <torch/extension.h>
#include "rows.h"

void run(torch::Tensor a, torch::Tensor b, double factor, torch::Tensor both, torch::Tensor total) {
    for (int64_t row = 0; row < a.size(0); ++row)
        fill_row(a.data_ptr<float>() + row * COLUMNS, b.data_ptr<float>(), float(factor),
                 both.data_ptr<float>() + row * 2 * COLUMNS, total.data_ptr<float>() + row);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
""",
    "rows.h": """\
#pragma once
constexpr int COLUMNS = 64;
inline void fill_row(const float* a, const float* b, float factor, float* both, float* total) {
    float sum = 0;
    for (int column = 0; column < COLUMNS; ++column) {
        both[column] = a[column] + b[column];
        both[COLUMNS + column] = a[column] * factor;
        sum += a[column];
    }
    *total = sum;
}
""",
}


def test_solutions_of_a_definition_are_judged_by_their_outputs(traced, command):
    traced.solution("writes", WRITES)
    traced.solution("returns", {"main.py": RETURNS}, destination_passing_style=False)
    traced.solution("wrong", WRITES.replace("a, factor", "b.expand_as(a), factor"))
    traced.solution("wrong_elsewhere", WRITES + "    if a.shape[0] == 17:\n        total += 1\n")
    traced.solution("leaves", WRITES.rpartition("    torch.sum")[0])
    traced.solution("raises", RAISES)
    traced.solution("reads_nothing", "import numbers_of_nobody\n\ndef run(*arguments):\n    pass\n")
    traced.write()
    done = command(traced.folder)
    assert done.returncode == 0, done.stderr
    rows = command.rows()
    assert {row["sizes"] for row in rows.values()} == {"M=40"}
    assert all(rows[name]["status"] in RIGHT for name in ("eager", "writes", "returns")), rows
    assert [rows[name]["status"] for name in ("wrong", "wrong_elsewhere", "leaves")] == ["incorrect"] * 3
    assert "M=17" in rows["wrong_elsewhere"]["reason"]
    assert "no rows in torch.Size([40, 64])" in rows["raises"]["reason"] and "raises.py:5" in rows["raises"]["reason"]
    assert rows["reads_nothing"]["status"] == "build_failed" and ":1" in rows["reads_nothing"]["reason"]


def test_cpp_solutions_are_built_and_their_compilers_errors_have_their_own_lines(traced, command):
    traced.solution("loops", CPP, languages=["cuda_cpp"])
    traced.solution("bound_here", {**CPP, "main.cpp": CPP["main.cpp"].partition("PYBIND11")[0]}, languages=["cuda_cpp"])
    traced.solution("broken", {**CPP, "rows.h": CPP["rows.h"].replace("float sum = 0;", "float sum = zero;")},
                    languages=["cuda_cpp"])
    traced.write()
    assert command(traced.folder / "definition.json").returncode == 0
    rows = command.rows()
    assert rows["loops"]["status"] in RIGHT and rows["bound_here"]["status"] in RIGHT, rows
    assert not [row for row in rows.values() if "whose its extension" in row["warnings"]], "it was compiled from its files"
    assert rows["broken"]["status"] == "build_failed"
    assert "rows.h:4" in rows["broken"]["reason"] and "zero" in rows["broken"]["reason"]


def test_submissions_to_a_task_are_judged_by_their_outputs(task, command, tmp_path):
    head = "#!POPCORN leaderboard doubled\nfrom task import input_t\nfrom utils import seeded\n\ndef custom_kernel(data: input_t):\n"
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, body in (
        ("writes", "    x, output = data\n    return output.copy_(x + x)\n"),
        ("returns", "    return data[0] * 2\n"),
        ("wrong", "    return data[0] * 2.001\n"),
        ("keeps", "    return data[1]\n"),
        ("changes", "    return data[0].mul_(2)\n"),
        ("raises", "    raise ValueError(f'{type(data).__name__} of {len(data)}')\n"),
    ):
        (mine / f"{name}.py").write_text(head + body)
    done = command(task.write(), "--candidates", mine)
    assert done.returncode == 0, done.stderr
    rows = command.rows()
    assert {row["sizes"] for row in rows.values()} == {"size=64"}
    assert all(rows[name]["status"] in RIGHT for name in ("eager", "writes", "returns")), rows
    assert rows["wrong"]["status"] in ("incorrect", "imprecise")
    assert all(rows[name]["status"] not in RIGHT for name in ("keeps", "changes"))
    assert "tuple of 2" in rows["raises"]["reason"] and "raises.py:6" in rows["raises"]["reason"]


def test_sizes_choose_another_workload_and_one_that_no_file_has(traced, command):
    traced.solution("writes", WRITES)
    traced.write()
    assert command(traced.folder, "--sizes", "M=3", "--sizes", "M=50").returncode == 0
    assert "M=50" in {row["sizes"] for row in command.rows().values()}


def test_several_tasks_are_a_suite(task, command):
    task.write()
    task.submission("submission", "def custom_kernel(data):\n    return data[0] * 2\n")
    other = type(task)(task.folder.parent / "tripled")
    other.reference = other.reference.replace("2 * x", "3 * x")
    other.write()
    other.submission("submission", "def custom_kernel(data):\n    return data[0] * 2\n")
    done = command(task.folder.parent / "*ed")
    assert done.returncode == 0, done.stderr
    rows = {path.parts[-3]: path.read_text() for path in command.folder.glob("results/*/*/*.csv")}
    assert sorted(rows) == ["doubled", "tripled"]
    assert ",incorrect," in rows["tripled"] and ",incorrect," not in rows["doubled"]


@pytest.mark.parametrize("example", ["scaled_rows", "row_softmax"])
def test_the_examples_run_as_they_are(command, example):
    done = command(REPOSITORY / "problems" / "formats" / example)
    assert done.returncode == 0, done.stderr
    candidates = [row for row in command.rows().values() if row["role"] == "candidate"]
    assert candidates and all(row["status"] in RIGHT for row in candidates)


def test_what_cannot_be_judged_ends_with_2_and_a_sentence(traced, task, command):
    traced.values["reference"] = "def walk(): pass"
    task.reference = task.reference.replace("return x, torch.empty_like(x)", "return x.cuda(), None")
    task.write()
    task.submission("submission", "def custom_kernel(data):\n    return data\n")
    for path, says in (
        (traced.write(), "'reference' defines no function run. Write def run(…): in it"),
        (task.folder, "generate_input asks for a CUDA device, and this machine has none"),
        (traced.folder / "definitions.json", "no such file. There is definition.json"),
    ):
        done = command(path)
        assert done.returncode == 2, done.stderr
        assert says in done.stderr and "Traceback" not in done.stderr


def test_a_new_candidate_for_a_definition_says_in_what_form_it_is_written(traced, command):
    traced.write()
    done = command.plain("new", traced.folder, "mine")
    assert done.returncode == 2 and "a .json file with sources and spec" in done.stderr
