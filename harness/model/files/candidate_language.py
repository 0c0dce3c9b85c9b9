"""What a candidate is written in, told from the calls and imports of its syntax tree.

A hint for the builder and for the column "built by", not evidence: whose kernels really ran is found out by
`attribution` from a profiled launch.
"""

from __future__ import annotations

import ast

# Position of `cuda_sources` in load_inline(name, cpp_sources, cuda_sources, …)
_CUDA_SOURCES_POSITION = 2
_CUDA_MODULES = ("cupy", "pycuda", "numba.cuda", "cuda", "cutlass.cute", "tilelang")
_CUDA_FILES = (".cu", ".cuh")
_CPP_FILES = (".cpp", ".cc", ".cxx", ".c")


def language_of(tree: ast.Module) -> str:
    """"cuda", "triton", "cpp" or "torch"; a file that mixes them is called by the first that applies."""
    nodes = list(ast.walk(tree))  # once: `list` reads every candidate of every problem
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = _imported_modules(froms, [node for node in nodes if isinstance(node, ast.Import)])
    builds, loads = (_named(calls, _names_of(froms, function)) for function in ("load_inline", "load"))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    runtime = _named(calls, {"_compile_kernel", "RawKernel", "RawModule"})
    keywords = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    if runtime or _any_below(imported, _CUDA_MODULES) or _gives_cuda_sources(builds, keywords, texts):
        return "cuda"
    if loads and any(text.endswith(_CUDA_FILES) for text in texts):
        return "cuda"
    if _any_below(imported, ("triton",)):
        return "triton"
    if builds or (loads and any(text.endswith(_CPP_FILES) for text in texts)):
        return "cpp"
    return "torch"


def _imported_modules(froms: list[ast.ImportFrom], plain: list[ast.Import]) -> set[str]:
    modules = {alias.name for node in plain for alias in node.names}
    for node in froms:
        if node.module and not node.level:
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def _any_below(imported: set[str], modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in imported for module in modules)


def _names_of(froms: list[ast.ImportFrom], function: str) -> set[str]:
    """The names under which the file may call `function`: its own, and those of ``import … as``."""
    aliases = [alias for node in froms for alias in node.names if alias.name == function and alias.asname]
    return {function, *(alias.asname for alias in aliases)}


def _named(calls: list[ast.Call], names: set[str]) -> list[ast.Call]:
    return [call for call in calls if _called_name(call) in names]


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _gives_cuda_sources(builds: list[ast.Call], keywords: set[str | None], texts: list[str]) -> bool:
    """Whether any load_inline gets CUDA, also through ``**options`` built elsewhere in the file, whose `keywords` and
    `texts` are all that it has.
    """
    spoken_of = "cuda_sources" in keywords or "cuda_sources" in texts
    for call in builds:
        given = [keyword.value for keyword in call.keywords if keyword.arg == "cuda_sources"]
        given += call.args[_CUDA_SOURCES_POSITION : _CUDA_SOURCES_POSITION + 1]
        if any(not _is_nothing(value) for value in given):
            return True
        if any(keyword.arg is None for keyword in call.keywords) and spoken_of:
            return True
    return False


def _is_nothing(value: ast.expr) -> bool:
    """None, an empty text or an empty list, which load_inline takes for "no CUDA"."""
    if isinstance(value, ast.Constant):
        return not value.value
    return isinstance(value, (ast.List, ast.Tuple)) and all(_is_nothing(item) for item in value.elts)
