"""What a candidate may make of the name of its own file."""

from __future__ import annotations

import pytest

from harness.model.files.python_source import knows_its_name


@pytest.mark.parametrize("source", [
    "x = 1",
    "HERE = Path(__file__).resolve().parent",
    "HERE = os.path.dirname(os.path.abspath(__file__))",
    "source = Path(__file__).with_name('kernel.cu').read_text()",
    "root = Path(__file__).parents[2] / 'include'",
    "if __name__ == '__main__':\n    main()",
    "if '__main__' == __name__:\n    main()",
    "raise TypeError(type(x).__name__)",
    "includes = [os.path.join(cutlass_library.__path__[0], 'source', 'include'), torch.__file__]",
    "# __file__ and __name__\nx = 'see __file__'",
])
def test_who_asks_for_the_folder_alone_does_the_same_under_any_name(source):
    assert not knows_its_name(source)


@pytest.mark.parametrize("source", [
    "load(name='k', sources=[str(Path(__file__).with_suffix('.cu'))])",
    "name = 'ext_' + Path(__file__).stem",
    "load_inline(name=__name__)",
    "name = os.path.basename(__file__)",
    "open(__file__.replace('.py', '.cu'))",
    "globals()['__file__']",
    "import inspect\npath = inspect.getfile(f)",
    "from inspect import currentframe",
    "sys._getframe().f_code",
    "name = ModelNew.__module__",
    "join(dirname(x), __file__)",
    "def f(:",
    "here = (path := Path(__file__)).parent\nname = path.stem",
    "folder = os.path.dirname(TABLE[Path(__file__).stem])",
    "folder = CONFIG[Path(__file__).stem].parent",
    "name = Path(__file__).stem.upper().parent",
    "name = (lambda: 0).__code__.co_filename",
    "import traceback\nframe = traceback.extract_stack()[-1]",
    "text = str(globals().values())",
])
def test_who_may_ask_for_more_does_not(source):
    assert knows_its_name(source)


def test_a_file_that_nests_without_end_is_doubted():
    assert knows_its_name("(" * 5000 + ")" * 5000)
