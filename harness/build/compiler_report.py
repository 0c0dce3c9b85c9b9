"""What ptxas (`-Xptxas=-v`) or the cubin says of each kernel: registers, spills, stack, shared and constant memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.build.cubin import read_told

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+)(?:\+\d+)? bytes cmem")
# Before the kernels of a source for an architecture; what is in bank 3 are its __constant__ variables.
_MODULE = re.compile(r"ptxas info\s*: \d+ bytes gmem(.*)")
_VARIABLES = re.compile(r"(\d+) bytes cmem\[3\]")
_MOST_TOLD = 60


@dataclass(frozen=True)
class KernelReport:
    """One kernel for one architecture. `spill_bytes` adds stores and loads, per thread; `shared_bytes` is static;
    `constant_bytes` has the arguments and the `__constant__` variables of its source too, and is None where neither
    ptxas says it nor the log has what was read in the cubin.
    """

    kernel: str
    arch: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int | None


def kernel_reports(log: str) -> tuple[KernelReport, ...]:
    """Return the kernels that `log`, the output of nvcc with ``-Xptxas=-v``, tells of, in its order."""
    reports: list[KernelReport] = []
    symbol = arch = None
    stack = spills = variables = 0
    in_cubin = read_told(log)
    for line in log.splitlines():
        if module := _MODULE.search(line):
            variables = sum(map(int, _VARIABLES.findall(module[1])))
        elif entry := _ENTRY.search(line):
            symbol, arch = entry.groups()
            stack = spills = 0
        elif symbol is None:
            continue
        elif sizes := _STACK.search(line):
            stack, spills = int(sizes[1]), int(sizes[2]) + int(sizes[3])
        elif used := _USED.search(line):
            shared, banks = _SHARED.search(used[2]), [int(size) for size in _CONSTANT.findall(used[2])]
            reports.append(KernelReport(
                short_name(symbol), arch, int(used[1]), spills, stack, int(shared[1]) if shared else 0,
                variables + sum(banks) if variables or banks else in_cubin.get((symbol, arch)),
            ))
            symbol = None
    return tuple(reports)


def summary(kernels: Sequence[KernelReport]) -> str:
    """Say the worst of each figure over `kernels`: "sm_90a, 32 registers, 0 spills, 8 KB shared"; "" for none."""
    if not kernels:
        return ""
    spills, shared = max(each.spill_bytes for each in kernels), max(each.shared_bytes for each in kernels)
    return ", ".join([
        "+".join(sorted({each.arch for each in kernels})), *([f"{len(kernels)} kernels"] if len(kernels) > 1 else []),
        f"{max(each.registers for each in kernels)} registers", f"{spills} bytes of spills" if spills else "0 spills",
        f"{f'{shared} B' if 0 < shared < 1024 else f'{shared / 1024:.3g} KB'} shared",
    ])


def of_each(kernels: Sequence[KernelReport]) -> str:
    """Say each figure of each kernel: "tile for sm_90a: 32 registers, 0 spills, …; …"; of very many, how many more."""
    more = [f"and {len(kernels) - _MOST_TOLD} more"] if len(kernels) > _MOST_TOLD else []
    return "; ".join([*map(_of_one, kernels[:_MOST_TOLD]), *more])


def _of_one(kernel: KernelReport) -> str:
    figures = {
        "registers": kernel.registers, "spills": kernel.spill_bytes, "stack": kernel.stack_bytes,
        "shared": kernel.shared_bytes, "constant": kernel.constant_bytes,
    }
    figures_text = ", ".join(f"{value} {name}" for name, value in figures.items() if value is not None)
    return f"{kernel.kernel} for {kernel.arch}: {figures_text}"


def short_name(symbol: str) -> str:
    """Return the name in a mangled C++ `symbol` (Itanium ABI) without parameters: "_Z4tileILi32EEvPf" → "tile<32>".
    With parts that are no plain names or numbers it comes back as it is.
    """
    if not symbol.startswith("_Z"):
        return symbol
    nested = symbol.startswith("_ZN")
    rest = symbol.removeprefix("_Z").removeprefix("N").lstrip("LK")
    names: list[str] = []
    while digits := re.match(r"\d+", rest):
        end = digits.end() + int(digits[0])
        name, rest = rest[digits.end():end], rest[end:].lstrip("L") if nested else rest[end:]
        if len(name) != int(digits[0]):
            return symbol
        if not name.startswith("_GLOBAL__N"):
            names.append(name)
        if rest.startswith("I"):
            arguments, rest = _template_arguments(rest[1:])
            names[-1:] = [f"{name}<{arguments}>"]
        if not nested:
            break
    return "::".join(names) or symbol


_TYPES = {"f": "float", "d": "double", "i": "int", "j": "unsigned", "l": "long", "m": "unsigned long", "b": "bool"}


def _template_arguments(rest: str) -> tuple[str, str]:
    """Read template arguments up to their closing E. Returns them joined by commas, and what follows."""
    arguments = []
    while rest and rest[0] != "E":
        if literal := re.match(r"L([a-z])(n?\d+)E", rest):
            value = literal[2].replace("n", "-")
            arguments.append({"0": "false", "1": "true"}.get(value, value) if literal[1] == "b" else value)
            rest = rest[literal.end():]
        elif enumerator := re.match(r"L(\d+)", rest):
            end = enumerator.end() + int(enumerator[1])
            value = re.match(r"(n?\d+)E", rest[end:])
            if value is None:
                return ", ".join([*arguments, "…"]), ""
            arguments.append(f"({rest[enumerator.end():end]}){value[1].replace('n', '-')}")
            rest = rest[end + value.end():]
        elif rest[0] in _TYPES:
            arguments.append(_TYPES[rest[0]])
            rest = rest[1:]
        elif named := re.match(r"\d+", rest):
            end = named.end() + int(named[0])
            arguments.append(rest[named.end():end])
            rest = rest[end:]
        else:
            return ", ".join([*arguments, "…"]), ""
    return ", ".join(arguments), rest[1:]
