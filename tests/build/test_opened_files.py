"""What a candidate reads in Python while it is imported decides whether a kept build is still good."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.build import opened_files
from harness.model.candidate import read_candidate

from .conftest import PLAIN_CANDIDATE

pytestmark = pytest.mark.processes

REPOSITORY = Path(__file__).resolve().parents[2]

# An audit hook stays as long as its process does.
PROGRAM = """
import json, sys
from pathlib import Path
folder, statements = Path(sys.argv[1]), sys.argv[2]
exec(sys.argv[3])
from harness.build.opened_files import OpenedFiles
opened = OpenedFiles(folder / "mine" / "candidate.py", [folder / "private"])
exec(statements)
print(json.dumps(sorted(str(Path(each).relative_to(folder)) for each in opened.names())))
"""


@pytest.fixture
def named(tmp_path):
    """`named(statements, *imported_from)`: what is named once `statements` have run in a folder with some files.

    `before` are statements for before they are watched.
    """
    for path in ("mine/candidate.py", "mine/tile.cl", "mine/deep/own.py", "private/made.cu", "lent/other.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("size = 32\n")
    (tmp_path / "mine" / "weights.bin").write_bytes(bytes(opened_files._LARGEST_BYTES + 1))

    def run(statements, *imported_from, before=""):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), statements, before], capture_output=True, text=True,
            check=True,
            env={"PYTHONPATH": ":".join([str(REPOSITORY), *(str(tmp_path / each) for each in imported_from)])},
        )
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(("path", "reads"), [
    ("_shared.py", "sys.path.insert(0, str(here))\nimport _shared"),
    ("parts/_shared.py", "sys.path.insert(0, str(here))\nimport parts._shared"),
    ("kernel.cl", "open(here / 'kernel.cl').read()"),
    ("deep/er/tile.json", "import json\njson.loads((here / 'deep' / 'er' / 'tile.json').read_bytes())"),
    ("../elsewhere/flags.txt", "import os\nos.read(os.open(here.parent / 'elsewhere' / 'flags.txt', os.O_RDONLY), 9)"),
    ("../elsewhere/_lent.py", "sys.path.insert(0, str(here.parent / 'elsewhere'))\nimport _lent"),
])
def test_what_the_candidate_reads_is_part_of_what_was_built(build_pool, path, reads, monkeypatch):
    monkeypatch.setenv("CPATH", str(build_pool.folder.parent / "elsewhere"))  # what no variable names is not seen
    read = build_pool.folder / path
    read.parent.mkdir(parents=True, exist_ok=True)
    read.write_text("32\n")
    here = "import pathlib, sys\nhere = pathlib.Path(__file__).parent\n"
    candidate = build_pool.write("reads", f"{here}{reads}\n{PLAIN_CANDIDATE}")
    build_pool.build(candidate)
    (kept,) = build_pool.build(candidate)
    assert kept.cached and kept.verdict is None
    read.write_text("64\n")
    (built,) = build_pool.build(candidate)
    assert not built.cached and built.verdict is None


def test_a_file_that_is_saved_while_the_build_goes_on_leaves_none_that_is_kept(build_pool):
    (build_pool.folder / "tile.cl").write_text("32")
    saves = "import pathlib, time\nopen(pathlib.Path(__file__).parent / 'tile.cl').read()\ntime.sleep(1)\n"
    candidate = build_pool.write("reads", f"{saves}{PLAIN_CANDIDATE}")
    saving = threading.Timer(0.5, (build_pool.folder / "tile.cl").write_text, ["64"])
    saving.start()
    build_pool.build(candidate)
    saving.join()
    assert not build_pool.build(candidate)[0].cached
    assert build_pool.build(candidate)[0].cached


def test_what_is_read_outside_its_folder_binds_a_build_to_the_folder(build_pool, monkeypatch):
    lent, moved = build_pool.folder.parent / "lent", build_pool.folder / "elsewhere"
    monkeypatch.setenv("CPATH", f"{lent}:{build_pool.folder / 'lent'}")
    for folder, size in ((lent, "32"), (moved, ""), (build_pool.folder / "lent", "64")):
        folder.mkdir()
        (folder / "flags.txt").write_text(size)
    reads = "import pathlib\nopen(pathlib.Path(__file__).parent.parent / 'lent' / 'flags.txt').read()\n"
    candidate = build_pool.write("reads", f"{reads}{PLAIN_CANDIDATE}")
    assert build_pool.build(candidate)[0].verdict is None
    assert build_pool.build(candidate)[0].cached
    shutil.copy(candidate.path, moved)
    assert not build_pool.build(read_candidate(moved / "reads.py"))[0].cached


def test_what_is_installed_and_what_nobody_reads_is_no_part_of_what_was_built(build_pool):
    (build_pool.folder / "notes.txt").write_text("first")
    candidate = build_pool.write("reads", f"import numpy, torch.utils.data\n{PLAIN_CANDIDATE}")
    build_pool.build(candidate)
    (build_pool.folder / "notes.txt").write_text("second")
    assert build_pool.build(candidate)[0].cached
    (manifest,) = build_pool.cache.root.glob("entries/*/manifest.json")
    assert json.loads(manifest.read_text())["files"] == {}


def test_what_is_only_written_is_not_named(named):
    assert named("open(folder / 'mine' / 'log.txt', 'w').write('said')") == []
    assert named("open(folder / 'mine' / 'log.txt', 'a').write('said')") == []
    assert named("open(folder / 'mine' / 'tile.cl', 'r+').read()") == ["mine/tile.cl"]


def test_of_too_much_the_smallest_are_named(named):
    half = opened_files._MOST_BYTES // 9  # eight of them and the small ones are less than the most
    makes = f"[(folder / 'mine' / f'table-{{n}}').write_bytes(bytes({half})) for n in range(12)]\n"
    found = named(f"{makes}for path in sorted((folder / 'mine').iterdir()):\n    path.is_file() and open(path).close()")
    assert found == [*(f"mine/table-{n}" for n in (0, 1, 10, 11, 2, 3, 4, 5)), "mine/tile.cl"]


def test_a_module_counts_whether_it_was_compiled_before_or_not(named):
    runs = (
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('own', folder / 'mine' / 'deep' / 'own.py')\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))"
    )
    assert named(runs) == named(runs) == ["mine/deep/own.py"]


def test_nor_the_candidate_itself_what_is_private_too_large_or_gone(named):
    for path in ("mine/candidate.py", "private/made.cu", "mine/weights.bin"):
        assert named(f"open(folder / '{path}').read(1)") == []
    assert named("path = folder / 'mine' / 'tile.cl'; path.read_text(); path.unlink()") == []


def test_a_path_may_be_of_any_kind_and_lead_over_links(named):
    assert named("import os; open(os.fsencode(folder / 'mine' / 'tile.cl')).read()") == ["mine/tile.cl"]
    assert named("import os; os.chdir(folder / 'mine'); open('tile.cl').read()") == ["mine/tile.cl"]
    linked = "(folder / 'link').symlink_to(folder / 'mine'); open(folder / 'link' / 'tile.cl').read()"
    assert named(linked) == ["mine/tile.cl"]
    assert named("import os; os.close(os.open(folder / 'lent' / 'other.py', os.O_RDONLY))") == ["lent/other.py"]
    assert named("import io; io.FileIO(folder / 'mine' / 'tile.cl').close()") == ["mine/tile.cl"]
    assert named("import os; open(os.dup(0)).close()") == []


@pytest.mark.parametrize("place", ["sys.prefix", "sys.base_prefix"])
def test_an_environment_above_the_candidate_hides_nothing_of_it(named, place):
    reads = "open(folder / 'mine' / 'tile.cl').read()"
    assert named(reads, before=f"{place} = str(folder)") == ["mine/tile.cl"]
    below = f"{place} = str(folder / 'mine' / 'deep')"
    assert named(reads, before=below) == ["mine/tile.cl"]
    assert named("open(folder / 'mine' / 'deep' / 'own.py').read()", before=below) == []


def test_where_modules_come_from_anyway_only_the_candidates_own_folder_counts(named):
    reads = "import other; from deep import own; open(folder / 'lent' / 'other.py').read()"
    assert named(reads, "lent", "mine") == ["mine/deep/own.py"]
    assert named("open(folder / 'lent' / 'other.py').read()", ".") == ["lent/other.py"]
    lent = "sys.path.append(str(folder / 'lent')); import other"
    assert named(lent) == ["lent/other.py"]
