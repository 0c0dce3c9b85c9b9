"""What the cases of the corpus reach for in the harness is there: one that reaches for a name of before does nothing."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re

import pytest

from harness.selftest.corpus import CORPUS, read_corpus

_MODULE = re.compile(r"harness(\.[a-z_]\w*)+")
_BELOW = re.compile(r"(worker|protocol|launch|judge|device)(\.[a-z_]+)+")
_REACHED_INTO = ("harness.worker.launch_slots", "harness.worker.loop", "harness.worker.outputs", "harness.protocol.frames",
                 "harness.protocol.clocks.stopwatch", "harness.protocol.clocks.gpu_stopwatch",
                 "harness.protocol.cpu_cache_flush", "harness.protocol.gpu_cache_flush", "harness.protocol.arena")
_OF_THEIR_OWN = {"is_closed"}  # what a case adds to a class


def modules_named_in(source: str) -> set[str]:
    """The modules of the harness that constants of `source` name, whole, below it, or in pieces."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple):
            pieces = [each.value if isinstance(each, ast.Constant) else None for each in node.elts]
            if pieces[:1] == ["harness"] and all(isinstance(each, str) for each in pieces):
                named.add(".".join(pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _MODULE.fullmatch(node.value):
                named.add(node.value)
            elif _BELOW.fullmatch(node.value):
                named.add(f"harness.{node.value}")
    return named


def classes() -> dict[str, type]:
    found = {}
    for name in _REACHED_INTO:
        for class_name, value in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            if value.__module__ == name:
                found[class_name] = value
    return found


@pytest.fixture(scope="module")
def sources():
    cases = read_corpus(CORPUS)
    return {each.path: each.path.read_text(encoding="utf-8") for each in cases if "syntax_error" not in each.name}


def test_each_module_that_a_case_names_is_there(sources):
    named = {path: modules_named_in(text) for path, text in sources.items() if "harness" in text}
    assert sum(map(len, named.values())) > 25
    gone = {(path.name, each) for path, those in named.items() for each in those if importlib.util.find_spec(each) is None}
    assert not gone


@pytest.mark.processes  # what a module asks of the linker as it is imported
def test_each_method_that_a_case_replaces_is_there(sources):
    known = classes()
    reached = {
        (path.name, name, attribute) for path, text in sources.items()
        for name, attribute in re.findall(r"\.([A-Z]\w+)\.([a-z_]\w*)", text) if name in known
    }
    assert len(reached) > 15
    assert not {each for each in reached if each[2] not in _OF_THEIR_OWN and not hasattr(known[each[1]], each[2])}


def test_a_name_in_pieces_is_read_as_one():
    assert modules_named_in('a = "harness", "worker", "loop"\nb = ("protocol.frames", "x")') == {
        "harness.worker.loop", "harness.protocol.frames",
    }
