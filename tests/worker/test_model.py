"""Importing and constructing a candidate, and describing what it raised without a frame of ours."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.extension_key import extension_key
from harness.protocol.source_import import import_source
from harness.worker import extensions
from harness.worker.model import construct, describe

SOURCE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(size))

    def forward(self, x):
        return broken(x)

def broken(x):
    raise ValueError("line one\\nline two")
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "candidate_under_test.py"
    path.write_text(SOURCE)
    return import_source(path)


def test_two_models_made_under_one_seed_have_the_same_parameters(module):
    first = construct(module, [], 5, torch.device("cpu"))
    torch.rand(10)
    second = construct(module, [], 5, torch.device("cpu"))
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.weight, construct(module, [], 6, torch.device("cpu")).weight)


def test_arguments_reach_the_constructor(module):
    assert construct(module, [7], 0, torch.device("cpu")).weight.shape == (7,)


def test_an_exception_is_described_by_type_first_line_and_place(module):
    with pytest.raises(ValueError) as caught:
        construct(module, [], 0, torch.device("cpu"))(torch.zeros(1))
    words = describe(caught.value)
    assert words["type"] == "ValueError"
    assert words["message"] == "line one"
    assert words["where"].endswith("candidate_under_test.py:13")
    assert words["out_of_memory"] is False


def test_a_function_whose_arguments_do_not_fit_is_where_it_is_defined(module):
    model = construct(module, [], 0, torch.device("cpu"))
    error = TypeError("forward() takes 2 positional arguments but 3 were given")  # by whom it is called: the harness or PyTorch
    place = describe(error, model.forward)["where"]
    assert place == f"{module.__file__}:{module.ModelNew.forward.__code__.co_firstlineno}"
    later = RuntimeError("CUDA error: an illegal memory access was encountered")  # of a kernel, seen when it is waited for
    assert describe(later, model.forward)["where"] == "", "nobody knows which line it was"
    for unknown in (None, print, torch.nn.Linear.forward, describe):
        assert describe(error, unknown)["where"] == "", "the harness's and PyTorch's own are no place of his"


def test_no_frame_of_the_harness_is_shown(tmp_path):
    path = tmp_path / "never_finished.py"
    path.write_text("raise RuntimeError('never finished')\n")
    with pytest.raises(RuntimeError) as caught:
        import_source(path)
    words = describe(caught.value)
    assert not [frame for frame in words["frames"] if "harness/" in frame or "importlib" in frame]
    assert words["where"].endswith("never_finished.py:1")


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
def test_running_out_of_memory_is_told_apart(error):
    assert describe(error)["out_of_memory"] is True


def test_an_endless_message_is_cut():
    assert len(describe(RuntimeError("x" * 10**6))["message"]) <= 400
    assert describe(RuntimeError(""))["message"] == ""


def test_an_extension_that_the_build_did_not_make_is_not_made_here(compile_calls):
    extensions.install({}, "/candidates")
    with pytest.raises(extensions.NotBuilt, match="'other'"):
        compile_calls.load_inline(name="other", cpp_sources="int f();")


def test_what_the_manifest_names_is_opened_once_by_content_however_the_call_is_spelt(compile_calls, monkeypatch):
    opened = []
    monkeypatch.setattr(extensions, "_open", lambda entry, name: opened.append(entry["path"]) or object())
    key = extension_key("load_inline", {"name": "product", "cpp_sources": "int f();", "functions": ["f"]})
    extensions.install({key: {"path": "/cache/product.so", "module_name": "product", "is_python_module": True}}, "/candidates")
    first = compile_calls.load_inline("product", "int f();", functions="f", verbose=True)
    second = compile_calls.load_inline(name="product", cpp_sources=["int f();"], functions=["f"])
    assert first is second
    assert opened == ["/cache/product.so"]


def test_where_it_may_ask_a_call_is_kept_and_what_it_returns_is_of_no_use(compile_calls, tmp_path):
    (tmp_path / "k.cpp").write_text("int g();")
    extensions.install({}, "/candidates", may_ask=True)
    first = compile_calls.load_inline(name="later", cpp_sources="int f();", extra_cflags=["-O2"], verbose=True)
    compile_calls.load(name="file", sources=str(tmp_path / "k.cpp"), extra_include_paths=[tmp_path])
    with pytest.raises(extensions.NotBuilt, match="'later'"):
        first.f(1)
    inline, file = extensions.asked()
    assert inline == {
        "kind": "load_inline", "texts": {},
        "arguments": {"name": "later", "cpp_sources": "int f();", "extra_cflags": ["-O2"]},
    }
    assert file["texts"] == {str(tmp_path / "k.cpp"): "int g();"}
    assert file["arguments"]["extra_include_paths"] == [str(tmp_path)]
    assert extensions.asked() == []
    assert extension_key(file["kind"], file["arguments"]) == extension_key(
        "load", {"name": "x", "sources": [str(tmp_path / "k.cpp")], "extra_include_paths": [tmp_path]}
    )


def test_what_no_compiler_took_raises_and_is_not_asked_for_again(compile_calls):
    key = extension_key("load_inline", {"name": "broken", "cpp_sources": "int f(;"})
    extensions.install({}, "/candidates", [key], may_ask=True)
    with pytest.raises(extensions.NotBuilt, match="could not be built"):
        compile_calls.load_inline(name="broken", cpp_sources="int f(;")
    assert extensions.asked() == []


def test_more_than_a_worker_may_tell_is_not_asked_for(compile_calls):
    extensions.install({}, "/candidates", may_ask=True)
    with pytest.raises(extensions.NotBuilt):
        compile_calls.load_inline(name="large", cpp_sources="x" * (1 << 20))
    assert extensions.asked() == []


def test_a_call_with_other_flags_than_at_build_time_is_not_built(compile_calls):
    key = extension_key("load_inline", {"name": "product", "cpp_sources": "int f();"})
    extensions.install({key: {"path": "/x.so", "module_name": "product", "is_python_module": True}}, "/candidates")
    with pytest.raises(extensions.NotBuilt):
        compile_calls.load_inline("product", "int f();", extra_cflags=["-Ofast"])
