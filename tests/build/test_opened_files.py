"""What a candidate reads in Python while it is imported decides whether a kept build is still good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.build import opened_files

from .conftest import PLAIN_CANDIDATE

REPOSITORY = Path(__file__).resolve().parents[2]

# An audit hook stays as long as its process does.
PROGRAM = """
import json, sys
from pathlib import Path
folder, statements = Path(sys.argv[1]), sys.argv[2]
from harness.build.opened_files import OpenedFiles
opened = OpenedFiles(folder / "mine" / "candidate.py", [folder / "private"])
exec(statements)
print(json.dumps(sorted(str(Path(each).relative_to(folder)) for each in opened.names())))
"""


@pytest.fixture
def named(tmp_path):
    """`named(statements, *imported_from)`: what is named once `statements` have run, in a folder with some files."""
    for path in ("mine/candidate.py", "mine/tile.cl", "mine/deep/own.py", "private/made.cu", "lent/other.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("size = 32\n")
    (tmp_path / "mine" / "weights.bin").write_bytes(bytes(opened_files._LARGEST_BYTES + 1))

    def run(statements, *imported_from):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), statements], capture_output=True, text=True, check=True,
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
def test_what_the_candidate_reads_is_part_of_what_was_built(workshop, path, reads):
    read = workshop.folder / path
    read.parent.mkdir(parents=True, exist_ok=True)
    read.write_text("32\n")
    here = "import pathlib, sys\nhere = pathlib.Path(__file__).parent\n"
    candidate = workshop.write("reads", f"{here}{reads}\n{PLAIN_CANDIDATE}")
    workshop.build(candidate)
    (kept,) = workshop.build(candidate)
    assert kept.cached and kept.verdict is None
    read.write_text("64\n")
    (built,) = workshop.build(candidate)
    assert not built.cached and built.verdict is None


def test_what_is_installed_and_what_nobody_reads_is_no_part_of_what_was_built(workshop):
    (workshop.folder / "notes.txt").write_text("first")
    candidate = workshop.write("reads", f"import numpy, torch.utils.data\n{PLAIN_CANDIDATE}")
    workshop.build(candidate)
    (workshop.folder / "notes.txt").write_text("second")
    assert workshop.build(candidate)[0].cached
    (manifest,) = workshop.cache.root.glob("entries/*/manifest.json")
    assert json.loads(manifest.read_text())["files"] == {}


def test_what_is_only_written_is_not_named(named):
    assert named("open(folder / 'mine' / 'log.txt', 'w').write('said')") == []
    assert named("open(folder / 'mine' / 'log.txt', 'a').write('said')") == []
    assert named("open(folder / 'mine' / 'tile.cl', 'r+').read()") == ["mine/tile.cl"]


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
    assert named("import os; open(os.dup(0)).close()") == []


def test_where_modules_come_from_anyway_only_the_candidates_own_folder_counts(named):
    reads = "import other; from deep import own; open(folder / 'lent' / 'other.py').read()"
    assert named(reads, "lent", "mine") == ["mine/deep/own.py"]
    lent = "sys.path.append(str(folder / 'lent')); import other"
    assert named(lent) == ["lent/other.py"]
