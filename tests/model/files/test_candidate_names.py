"""Names of candidates: plain, unlike a baseline's, unlike another candidate's, in every cell that shows them."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from harness.model.candidate import find_candidates, read_candidate
from harness.model.files.candidate_names import BASELINES, cell_of, fault_of_name, look_alike
from harness.model.verdict import ReasonCode
from tests.test_layers import REPOSITORY

MODEL = "import torch\nclass ModelNew(torch.nn.Module): pass\n"


def put(folder, *names):
    """Files in the order in which they came."""
    for age, name in enumerate(names):
        (folder / name).write_text(MODEL)
        os.utime(folder / name, ns=(age * 10**9, age * 10**9))
    return {each.path.name: each for each in find_candidates(folder)}


@pytest.mark.parametrize("stem", [
    "tiled ", " tiled", "tiled\u00a0", "tiled\u200b", "\u200dtiled", "ti\u2060led", "tiled\ufeff", "t\u0456led", "\u0435ager",
    "\uff54iled", "tiled\u0301", "t\u0131led", "tiled\u2024py", "\u217cong", "tiled_", "tiled.", "tiled--", "two  words", "ti\u00adled",
    "größe", "\U0001d42dled", "\u202edelit", "a/b", "x|y", "\ua789tiled",
])
def test_a_name_of_anything_but_plain_characters_is_refused(stem):
    assert fault_of_name(stem) is not None
    cell = cell_of(stem, is_refused=True)
    assert cell.isascii() and cell.startswith("?")


def test_a_plain_name_is_its_own_compatibility_form():
    plain = [chr(code) for code in range(128) if fault_of_name(f"a{chr(code)}a") is None]
    assert set("abz019_-.+,=@() ") <= set(plain)
    assert all(unicodedata.normalize("NFKC", each) == each for each in plain)


@pytest.mark.parametrize("stem", ["Eager", "EAGER", "eager.tf32", "eager_tf32", "Torch.Compile", "torch_compile", "torch compile", "eager-TF32"])
def test_a_name_that_looks_like_a_baselines_is_refused_with_a_sentence_that_names_it(stem):
    fault = fault_of_name(stem)
    assert "looks like" in fault and any(baseline in fault for baseline in BASELINES)


@pytest.mark.parametrize(("one", "other", "alike"), [
    ("tiled", "Tiled", True), ("tiled", "tiIed", True), ("tiled", "ti1ed", True), ("v10", "vlO", True), ("mma", "rnrna", True),
    ("warp_tiles", "vvarp-tiles", True), ("tiled 32", "tiled_32", True),
    ("v1", "v2", False), ("tiled", "tiles", False), ("mma_fp16x3", "mma_tf32x3", False), ("a_b", "ab", False),
])
def test_names_look_alike_that_differ_in_what_a_reader_overlooks(one, other, alike):
    assert look_alike(one, other) is alike


def test_of_two_names_that_look_alike_the_plainer_is_kept_and_of_two_as_plain_the_earlier(tmp_path):
    found = put(tmp_path, "Tiled.py", "tiled.py", "tile_l.py", "tile_1.py", "other.py")
    refused = {name: each for name, each in found.items() if each.fault is not None}
    assert set(refused) == {"Tiled.py", "tile_1.py"}
    assert refused["Tiled.py"].fault == "?Tiled.py: its name looks like that of tiled.py, another candidate's. Rename the file"
    assert refused["tile_1.py"].name == "?tile_1" and refused["tile_1.py"].fault_code is ReasonCode.IMPORT_ERROR


def test_a_candidate_that_is_read_alone_is_held_against_those_of_its_folder(tmp_path):
    put(tmp_path, "tiled.py")
    assert read_candidate(tmp_path / "tiled.py").fault is None
    put(tmp_path, "tiled.py", "TILED.py")
    assert "looks like that of tiled.py" in read_candidate(tmp_path / "TILED.py").fault
    assert read_candidate(tmp_path / "tiled.py").fault is None
    (tmp_path / "tiled.py").unlink()
    assert read_candidate(tmp_path / "TILED.py").fault is None


def test_of_several_folders_all_names_count(tmp_path):
    for folder, name in (("mine", "Naive.py"), ("shipped", "naive.py")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(MODEL)
    found = {each.path.name: each.fault for each in find_candidates([tmp_path / "mine", tmp_path / "shipped"])}
    assert found["naive.py"] is None and "looks like that of naive.py" in found["Naive.py"]


def test_of_the_shipped_candidates_and_the_corpus_only_those_look_like_others_that_are_to():
    refused = set()
    folders = [*(REPOSITORY / "candidates").iterdir(), *(REPOSITORY / "tests" / "adversarial").iterdir()]
    for folder in filter(Path.is_dir, folders):
        for path in folder.glob("[!_]*.py"):
            refused |= {path.name} if "Rename the file" in (read_candidate(path).fault or "") else set()
    assert refused == {"torch_compile.py", "wrong-dtype.py", "e\u0430ger.py"}
