"""The reference of a problem: what will do, and what is said of one that will not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.problem import load_problem


def test_a_reference_is_never_imported(files):
    source = files.reference + "raise SystemExit('imported')\n"
    assert files.load(reference=source).reference_source == source


@pytest.mark.parametrize(("old", "new"), [
    ("def get_init_inputs():\n    return []\n", ""),
    ("class Model(torch.nn.Module):\n    pass", "from y import Model"),
    ("get_inputs():", "get_inputs(n=1, *, k=2):"),
    ("get_inputs():", "get_inputs(*some, **more):"),
    ("import torch\n", "import torch\nclass Helper: pass\ndef helper(n): pass\n"),
])
def test_any_reference_that_can_be_called_will_do(files, old, new):
    reference = files.reference.replace(old, new)
    assert reference != files.reference
    assert files.load(reference=reference).reference_source == reference


@pytest.mark.parametrize(("old", "new", "says"), [
    ("class Model(", "class Modle(",
     "problems/x.py:5: found class Modle; the harness runs the class named Model. "
     "Rename it to Model."),
    ("class Model(", "class ModelNew(",
     "problems/x.py:5: defines class ModelNew and no class Model, so it is a "
     "candidate and not a reference. A reference defines class Model, get_inputs and get_init_inputs."),
    ("class Model(torch.nn.Module):\n    pass\n", "", "problems/x.py: there is no class Model. "
     "Write class Model(nn.Module) with a forward method."),
    ("get_inputs", "get_input",
     "problems/x.py:7: there is no function get_inputs. "
     "Did you mean get_inputs where it says 'get_input'?"),
    ("def get_inputs():\n    return []\n", "", "problems/x.py: there is no function get_inputs. "
     "Write def get_inputs(): return [torch.rand(M, M), …]"),
    ("get_init_inputs", "get_initial_inputs",
     "problems/x.py:9: found a function 'get_initial_inputs'. "
     "Did you mean get_init_inputs?"),
    ("get_inputs():", "get_inputs(n, *, k):",
     "problems/x.py:7: get_inputs is called without arguments, but wants "
     "n, k. Use module-level names instead."),
    ("get_init_inputs():", "get_init_inputs(n):",
     "problems/x.py:9: get_init_inputs is called without arguments, "
     "but wants n. Use module-level names instead."),
    ("M = 4096", "m = 4096", "problems/x.yaml:5: size 'M' is not assigned in x.py. Did you mean 'm'?"),
    ("M = 4096\n", "",
     "problems/x.yaml:5: size 'M' is not assigned in x.py. Write M = 4096 at the top of x.py."),
    ("M = 4096", "M, L = 4096, 1",
     "problems/x.py:2: size 'M' is not set by an assignment of its own at the left "
     "margin. Write M = 4096 on a line of its own."),
    ("M = 4096", "M = L = 4096",
     "problems/x.py:2: size 'M' is not set by an assignment of its own at the left "
     "margin. Write M = 4096 on a line of its own."),
    ("M = 4096", "if True:\n    M = 4096",
     "problems/x.py:3: size 'M' is not set by an assignment of its own at the "
     "left margin. Write M = 4096 on a line of its own."),
    ("N = 4", "N = 4\nM = 8",
     "problems/x.py:5: size 'M' is assigned on line 2 and again here. Keep one of them."),
    ("M = 4096", "M = (4096", "problems/x.py:2: Python cannot read this: '(' was never closed"),
])
def test_what_a_reference_lacks_is_told_with_what_to_write(files, old, new, says):
    assert files.message(reference=files.reference.replace(old, new, 1)) == says


def test_one_wrong_name_of_a_timed_size_is_one_line_that_offers_the_right_one(files):
    says = "problems/x.yaml:5: size 'rows' is not assigned in x.py. Did you mean 'M'?"
    assert files.message(yaml=files.yaml.replace("timed: {M", "timed: {rows")) == says


def test_an_empty_reference_says_what_one_defines(files):
    says = "problems/x.py: is empty; a reference defines class Model and get_inputs"
    assert files.message(reference=" \n") == says


def test_a_size_assigned_inside_a_function_does_not_count(files):
    reference = files.reference.replace("M = 4096\n", "") + "def f():\n    M = 4096\n"
    assert "size 'M' is not assigned in x.py" in files.message(reference=reference)


def test_all_that_a_reference_lacks_is_told_at_once(files):
    assert len(files.message(reference="import torch\nM = 1\n").splitlines()) == 4


@pytest.mark.parametrize(("name", "says"), [
    ("y.py", "problems/x.yaml:2: reference y.py: no such file. Did you mean problems/x.py?"),
    ("nothing_like_it.py",
     "problems/x.yaml:2: reference nothing_like_it.py: no such file. There is problems/x.py."),
    (".",
     "problems/x.yaml:2: reference .: is a folder, not a file. Name a file in it, for example problems/x.py"),
])
def test_a_reference_that_is_not_there_is_told_at_the_line_that_names_it(files, name, says):
    assert files.message(files.yaml.replace("x.py", name)) == says


def test_a_kernelbench_file_has_the_same_sentences(files):
    Path("a.py").write_text("import torch\n\nclass Modell: pass\n")
    with pytest.raises(InputError) as caught:
        load_problem("a.py")
    first, second = str(caught.value).splitlines()
    assert first == "a.py:3: found class Modell; the harness runs the class named Model. Rename it to Model."
    assert second.startswith("a.py: there is no function get_inputs.")
