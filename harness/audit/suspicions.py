"""What in a candidate's source reaches outside a kernel's business, read without running it.

A second line only: nobody is rejected for how a source reads. Where a finding of the judge stands, these lines say
where to look; where none does, they take the rank of a custom kernel, since what a process says of its own kernels
rests on what such a source can change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from harness.model.files.imported_sources import UNREADABLE, imported_sources
from harness.model.files.python_source import SourceFault, parsed
from harness.model.files.text_files import declared_encoding
from harness.model.verdict import Status, Verdict

if TYPE_CHECKING:
    from harness.judge.judgement import Judgement
    from harness.model.candidate import Candidate

_LONGEST_PATH = 50  # each link of a chain of attributes is looked at as the end of one
_WATCHED_MODULES = ("torch", "time", "harness", "builtins", "sys", "os", "gc", "inspect", "numpy")
# What a kernel has no use for, in any text of the source: what records its launches, and its process as the system has it.
_TEXTS = (
    (re.compile(r"cupti", re.IGNORECASE), "names CUPTI, which records its launches"),
    (re.compile(r"/proc/(?:self|thread-self|\d|%|\{|$)"), "looks at its own process's memory and files (/proc)"),
)
_SWITCHES = frozenset({"sys.dont_write_bytecode"})
_REACHING = {path: words for words, paths in (
    ("looks through all objects of its process", ("gc.get_objects", "gc.get_referrers")),
    ("looks at its callers' frames", ("sys._getframe", "inspect.stack", "inspect.currentframe")),
    ("looks at other threads' frames", ("sys._current_frames",)),
    ("starts another process", ("os.fork",)),
    ("sends signals", ("os.kill",)),
    ("asks for its parent process", ("os.getppid",)),
    ("traces every call", ("sys.settrace", "sys.setprofile")),
    ("asks whether it is being traced", (
        "torch._C._autograd._profiler_enabled", "torch._C._autograd._profiler_type",
        "torch.autograd._profiler_enabled", "torch.autograd.profiler._is_profiler_enabled",
    )),
    ("looks at who traces its calls", ("sys.getprofile", "threading.getprofile")),
    ("is called wherever a module is", [
        f"torch.nn.modules.module.register_module_{which}_hook"
        for which in ("forward_pre", "forward", "full_backward_pre", "full_backward", "backward")
    ]),
) for path in paths}


@dataclass(frozen=True)
class Suspicion:
    """One finding: the line, what it does in words, whether it changes what others rely on, and the module beside the
    candidate's file that it is in, if any.
    """

    line: int
    words: str
    patches: bool
    module: str = ""

    @property
    def text(self) -> str:
        return f"line {self.line} {f'of {self.module} ' if self.module else ''}{self.words}"


def suspicions_of(candidate: Candidate) -> list[Suspicion]:
    """Findings in the source of `candidate`, then those in the modules beside it that it imports."""
    if candidate.files is None:
        modules = [(path.name, text) for path, text in islice(imported_sources(candidate.path), 1, None)]
    else:
        modules = [(name, text) for name, text in candidate.files if name.endswith(".py")]
        modules = [(name, UNREADABLE if declared_encoding(text.encode(errors="replace")) else text) for name, text in modules]
    found = suspicions_in(candidate.source)
    for name, text in modules:
        found += [replace(each, module=name) for each in suspicions_in(text)]
    return found


def suspicions_in(source: str) -> list[Suspicion]:
    """Findings in order of their lines; none for a source that does not parse."""
    if source == UNREADABLE:
        return [Suspicion(1, "cannot be read as Python reads it", False)]
    try:
        tree = parsed(source)
    except SourceFault:
        return []
    suspicions = {(each.line, each.words): each for each in (*_all(tree), *_in_texts(tree))}
    return sorted(suspicions.values(), key=lambda each: each.line)


def _all(tree: ast.Module) -> Iterator[Suspicion]:
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            for module in modules:
                if module.split(".")[0] == "harness":
                    yield Suspicion(node.lineno, f"imports {module}, the judge's own code", True)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                path = _path(target, names)
                if isinstance(target, ast.Attribute) and _is_watched(path):
                    yield Suspicion(node.lineno, f"replaces {path}", True)
        elif isinstance(node, ast.Call):
            path = _path(node.args[0], names) if node.args else ""
            if isinstance(node.func, ast.Name) and node.func.id == "setattr" and _is_watched(f"{path}."):
                yield Suspicion(node.lineno, f"replaces an attribute of {path}", True)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            path = _path(node, names)
            if path in _REACHING:
                yield Suspicion(node.lineno, f"{_REACHING[path]} ({path})", False)
            elif path == "sys.modules":
                yield Suspicion(node.lineno, "looks through the loaded modules (sys.modules)", False)


def _in_texts(tree: ast.Module) -> Iterator[Suspicion]:
    names, first = _imported(tree), next(iter(tree.body), None)
    docstring = first.value if isinstance(first, ast.Expr) else None
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        text = text or (node.attr if isinstance(node, ast.Attribute) else _path(node, names))
        for pattern, words in _TEXTS:
            if text and pattern.search(text) and node is not docstring:
                yield Suspicion(node.lineno, words, False)


def _imported(tree: ast.Module) -> dict[str, str]:
    """Local name → dotted path of what was imported under it."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.split(".")[0]] = each.name if each.asname else each.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def _path(node: ast.AST, names: dict[str, str]) -> str:
    """The dotted path of what was imported; "" for anything else, a path of very many names among it."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
        if len(attributes) > _LONGEST_PATH:
            return ""
    begins = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([begins, *reversed(attributes)]) if begins else ""


def _is_watched(path: str) -> bool:
    # Switches that a library offers to be set are not patches.
    if not path or path.startswith(("torch.backends.", "os.environ")) or ".config." in path or path in _SWITCHES:
        return False
    return "." in path and path.split(".")[0] in _WATCHED_MODULES


def with_suspicions(verdict: Verdict, suspicions: Sequence[Suspicion], judgement: Judgement) -> Verdict:
    """Where to look in the source, beside a finding; beside a good row, its word on its own kernels is not taken."""
    if verdict.status is Status.OK and suspicions:
        judgement.warnings += [f"its {each.text}: look at it" for each in suspicions if each.patches]
        provenance = judgement.provenance
        if provenance is not None and provenance.kind in ("custom", "mixed"):
            judgement.provenance = replace(provenance, kind="unknown", own_share=None)
            judgement.warnings.append(
                f"its {suspicions[0].text}: what its process says of its own kernels is not taken from such a source, "
                "so it has no rank; leave that out and run again"
            )
    elif verdict.status in (Status.REJECTED, Status.INCORRECT) and suspicions:
        return replace(verdict, reason=f"{verdict.reason}; its {suspicions[0].text}")
    return verdict
