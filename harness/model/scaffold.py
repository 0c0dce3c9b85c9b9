"""New candidates and problems that run as they stand: the text of each, and the writing of it without overwriting.

A candidate begins as the reference's own arithmetic or as a copy of another; a problem as a small one, all explained.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

from harness.model.candidate import Candidate, find_candidates, read_candidate
from harness.model.errors import InputError
from harness.model.files.candidate_names import fault_of_name
from harness.model.files.python_source import called_name, lines_of, parsed
from harness.model.files.text_files import shown
from harness.model.paths import folders_of
from harness.model.problem import Problem
from harness.model.spelling import hint_for

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

_HEADER = '''"""{name}: write here the idea, what it adds over the step below it, the tile picture, the limits.

So far it is what the reference does, in PyTorch: right, and without a rank, since the kernels that run are a library's.
Put a kernel of your own in the place of `forward` (CUDA or C++ through torch.utils.cpp_extension.load_inline, or
Triton), on the current stream, writing every element of the output. The problem's sizes come from the inputs.
"""
'''

_PROBLEM = """\
# Each key is explained in docs/guide.md under "Write a problem"; only title and reference are needed.
title: {title}, one line for tables
reference: {name}.py
dtype: float32
sizes:
  timed: {{N: 8192, D: 4096}}          # module-level names of the reference, assigned anew
  check: [{{N: 1, D: 1}}, {{N: 31, D: 33}}, {{N: 257, D: 1000}}]  # must be right at these too
  cpu: {{N: 512, D: 1024}}             # timed here on a CPU
useful: {{bytes: "8*N*D"}}             # what the problem must move: D numbers in and out, N times
accuracy: {{class: fp32, scale: row_max, terms: D}}  # terms: the length of the longest sum
baselines: [eager, torch.compile]
kinds: [custom]
"""

_REFERENCE = '''"""{title}: write here what is computed. The reference, in KernelBench format."""

import torch
import torch.nn as nn

N = 8192
D = 4096


class Model(nn.Module):
    """Softmax over each row of x (N, D), as an example: put your own arithmetic in its place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(N, D)]


def get_init_inputs():
    return []
'''


def new_candidate(problem: Problem, name: str, rung: str | None = None) -> Path:
    """Write `NAME.py` among the problem's candidates and return its path; `rung` names the candidate it begins as.
    Raises InputError for a name that no file or no candidate may have, a rung that is not there, and a file that is.
    """
    if problem.form is not None:
        raise InputError("is another project's problem, and its candidates are written in that project's form", problem.path,
                         hint=problem.form.wanted)
    path = problem.candidates_dir / f"{checked_name(name)}.py"
    if (fault := fault_of_name(path.stem)) is not None:
        raise InputError(f"'{name}' is no name for a candidate: {fault}")
    source = from_reference(problem.reference_source, path.stem) if rung is None else \
        from_rung(_rung(rung, problem), path.stem, problem.name)
    _write({path: source})
    return path


def new_problem(name: str, folder: Path) -> tuple[Path, Path]:
    """Write `NAME.yaml` and `NAME.py` in `folder` and return their paths. Raises InputError where one is there."""
    stem = checked_name(name)
    if not stem.isidentifier():
        plain = re.sub(r"[^A-Za-z0-9]", "_", stem)
        meant = plain if plain.isidentifier() else f"problem_{plain}"
        raise InputError(f"'{name}' is no name for a Python module", hint=f"Type {meant}")
    title = stem.replace("_", " ").capitalize()
    yaml_path, reference_path = folder / f"{stem}.yaml", folder / f"{stem}.py"
    _write({yaml_path: _PROBLEM.format(name=stem, title=title), reference_path: _REFERENCE.format(title=title)})
    return yaml_path, reference_path


def from_reference(reference: str, name: str) -> str:
    """The reference as a candidate: `Model` called `ModelNew`, without inputs and the sizes that it does not use."""
    tree = parsed(reference)
    lines = lines_of(reference)
    used = _used(tree)
    for node in reversed(tree.body):
        is_docstring = node is tree.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        unused = bool(_targets(node)) and not {each.id for each in _targets(node)} & used
        if is_docstring or unused or _makes_inputs(node):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            del lines[first - 1 : node.end_lineno]
    body = re.sub(r"\n{4,}", "\n\n\n", _renamed("".join(lines)).strip("\n"))
    return f"{_HEADER.format(name=name)}\n{body}\n"


def from_rung(rung: Candidate, name: str, problem: str) -> str:
    """The source of `rung` with a header to be edited, and its extension under a name of its own."""
    if rung.fault is not None:
        raise InputError(f"'{rung.name}' cannot be begun from: {rung.fault}")
    tree = parsed(rung.source)
    lines = lines_of(rung.source)
    own = re.sub(r"\W", "_", f"{problem}_{name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) in ("load_inline", "load"):
            named = next((each.value for each in node.keywords if each.arg == "name"), next(iter(node.args), None))
            if isinstance(named, ast.Constant) and isinstance(named.value, str) and named.lineno == named.end_lineno:
                line = lines[named.lineno - 1].encode()
                replaced = line[: named.col_offset] + f'"{own}"'.encode() + line[named.end_col_offset :]
                lines[named.lineno - 1] = replaced.decode()
    heading = f"{name}: begun as a copy of {rung.name}; write here what it adds to that."
    if ast.get_docstring(tree) is None:
        return f'"""{heading}"""\n\n' + "".join(lines)
    first = tree.body[0].lineno - 1
    lines[first] = re.sub(r'("""|\'\'\'|"|\')', lambda quotes: f"{quotes[0]}{heading}\n\n", lines[first], count=1)
    return "".join(lines)


def _renamed(source: str) -> str:
    """`Model` as `ModelNew`, wherever it stands as a name: also in `super(Model, self)`."""
    lines = lines_of(source)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type == tokenize.NAME and token.string == "Model":
            row = token.start[0] - 1
            lines[row] = f"{lines[row][: token.start[1]]}ModelNew{lines[row][token.end[1] :]}"
    return "".join(lines)


def _used(tree: ast.Module) -> set[str]:
    """The names that the model hangs on: what its code reads and no argument hides, and what those are made of."""
    used = {name for node in tree.body if not _targets(node) and not _makes_inputs(node) for name in _read_in(node)}
    while True:
        more = {name for node in tree.body if {each.id for each in _targets(node)} & used for name in _read_in(node)}
        if more <= used:
            return used
        used |= more


def _read_in(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    names = {name for child in ast.iter_child_nodes(node) for name in _read_in(child)}
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        names -= {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return names


def _targets(node: ast.stmt) -> list[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets if all(isinstance(each, ast.Name) for each in targets) else []


def _makes_inputs(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in ("get_inputs", "get_init_inputs")


def _rung(word: str, problem: Problem) -> Candidate:
    """The candidate called `word` among the problem's own or those that are shipped, or in a file of that path."""
    if Path(word).is_file():
        return read_candidate(Path(word))
    folders = [problem.candidates_dir, *problem.more_candidates]
    folders += [each / problem.name for each in folders_of("candidates")]
    holding = [folder for folder in dict.fromkeys(folders) if any(folder.glob("*.py"))]
    candidates = {each.name: each for each in (find_candidates(holding) if holding else ())}
    name = word.removesuffix(".py")
    if name not in candidates:
        raise InputError(f"there is no candidate '{word}' to begin from",
                         hint=hint_for(name, list(candidates), "There are"))
    return candidates[name]


def checked_name(name: str) -> str:
    """The stem of a candidate's or problem's file. Raises InputError for what would lie elsewhere or be passed over."""
    stem = name.removesuffix(".py")
    if not _NAME.fullmatch(stem):
        raise InputError(f"'{name}' is no name for a file of its own",
                         hint="Use letters, digits and _, as in tiled_shared")
    return stem


def _write(files: dict[Path, str]) -> None:
    """All of `files` or none: a file that is there is somebody's work."""
    for path in files:
        if path.exists():
            raise InputError("is there already, and is not overwritten", shown(path),
                             hint="Choose another name, or remove it")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror or error})", shown(path)) from None
