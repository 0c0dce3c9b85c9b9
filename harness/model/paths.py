"""Where things lie: this package, what is shipped with it, and the project that a person works in.

In a checkout what is shipped lies beside `harness/`; in an installation it lies in `kernel_referee/` beside it. Nothing
is ever written there: what is new goes into the current project.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]  # what `import harness` is found in; installed, site-packages
_PACKAGE_DATA = REPOSITORY / "kernel_referee"
IS_INSTALLED = (_PACKAGE_DATA / "problems").is_dir()
SHIPPED = _PACKAGE_DATA if IS_INSTALLED else REPOSITORY
CONFIGS_DIR = SHIPPED / "configs"

# Ours must be the package that is imported, whatever PYTHONPATH holds; but what lies beside it in an installation must
# not come before the standard library.
_START = """
import runpy, sys
first, module = sys.argv[2:4]
others = [each for each in sys.path if each]
sys.path[:] = [sys.argv[1], *others]
import harness
sys.path[0] = first
del sys.argv[1:4]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def _program(started_as: str, is_installed: bool) -> str:
    """The words that start this program, for messages that say what to type."""
    name = os.path.basename(started_as)
    if name == "__main__.py" and os.path.basename(os.path.dirname(started_as)) == "harness":
        return "python -m harness"
    if name == "kernel-referee" or (is_installed and name != "run.py"):
        return "kernel-referee"
    return "python run.py"


PROGRAM = _program(sys.argv[0] if sys.argv else "", IS_INSTALLED)
TRITON_HINT = "pip install triton" if IS_INSTALLED else "pip install -c constraints.txt -e '.[triton]'"


def python_of(module: str, *arguments: str, repository: Path = REPOSITORY) -> list[str]:
    """Return the command line that runs a `module` of this package, or of `repository`, as `python -m` would."""
    first = SHIPPED if repository == REPOSITORY else repository
    return [sys.executable, "-c", _START, str(REPOSITORY), str(first), module, *arguments]


def project() -> Path | None:
    """The nearest folder, from the working directory upward, that has a folder `problems`; None without one."""
    try:
        here = Path.cwd()
    except OSError:  # removed meanwhile
        return None
    return next((folder for folder in (here, *here.parents) if os.path.isdir(folder / "problems")), None)


def own(name: str) -> Path:
    """The folder `name` of the current project, or of the working directory where there is no project."""
    folder = project()
    return Path(name) if folder is None or folder == Path.cwd() else folder / name


def folders_of(name: str) -> list[Path]:
    """The folders `name` that there are: the current project's, then the shipped one."""
    folders = {os.path.realpath(each): each for each in (SHIPPED / name, own(name)) if os.path.isdir(each)}
    return list(folders.values())[::-1]


def located(path: Path) -> Path:
    """What a relative `path` means: below the working directory, the current project, or what is shipped; `path` itself
    where there is nothing of that name.
    """
    if path.is_absolute() or os.path.exists(path):
        return path
    roots = filter(None, (project(), SHIPPED))
    return next((root / path for root in roots if os.path.exists(root / path)), path)


def is_shipped(path: Path) -> bool:
    """Whether a candidate's `path` is a shipped one, beside which only who works in that checkout is to write."""
    return path.resolve().is_relative_to(SHIPPED / "candidates") and (IS_INSTALLED or project() != SHIPPED)
