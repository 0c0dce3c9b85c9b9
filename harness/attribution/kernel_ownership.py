"""From what ran in a launch to a kind: custom, library, mixed or unknown.

Whose a kernel is, in this order, the first that applies:

1. A name that only a library's ready-made kernels have is the library's. Symbols and caches cannot change that: a
   decoy called ampere_sgemm_128x64_nn, compiled and never launched, is in the extension's device code too.
2. A name of the candidate's device code, as its build produced it, is the candidate's own. That holds for
   instantiations of libraries that come as headers (CUTLASS, CUB, Thrust), which the build compiled as it did the
   rest; but not when PyTorch's libraries carry a kernel of that very name, for then nothing says which of the two
   ran. The same is asked of names in anonymous namespaces, which look alike wherever they lie, and of symbols that are
   not demangled.
3. A name that a library may well have given is the library's.
4. A name that the candidate's source defines, and for Triton its cache as well, compiled from a file that is no
   package's, is its own: it was compiled while it ran. Numba, CuTe DSL and TileLang put a function's name into one of
   their own form. But not when an installed package has a kernel of that name as text, or PyTorch's libraries carry
   one: then it is unknown which of the two ran.
5. What is left is a library's where PyTorch's carry a kernel of that very name, and else unknown.

What counts is the time in which nothing but the candidate's own kernels ran: a library's work is not made smaller by
kernels that wait beside it.

On a CPU there are no kernels to trace. There the time inside the candidate's extensions is set against the time in
PyTorch's operators, wherever they were called from; a call that was mostly neither is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from harness.attribution.installed_kernels import brought_by_packages, shipped_by_pytorch
from harness.attribution.kernel_names import (
    bare_name, is_anonymous, is_fill, is_header_template, is_library_like, is_mangled, is_numbas, is_shipped, stems_of,
)
from harness.attribution.symbols import OwnNames

OWN_SHARE, LIBRARY_SHARE = 0.95, 0.05
_CLAIMS = ("library", "unknown", "mixed", "custom")  # from least to most
_BEFORE = ("library", "unknown", "own", "driver")
# Copies and fills by the driver are nobody's kernel, and reserving memory is no arithmetic.
_NEUTRAL_KERNELS = ("Memset", "Memcpy")
_NEUTRAL_OPERATORS = frozenset(f"aten::{name}" for name in (
    "empty", "empty_like", "empty_strided", "empty_permuted", "as_strided", "as_strided_", "view", "view_as", "t", "t_",
    "transpose", "transpose_", "detach", "detach_", "slice", "select", "expand", "expand_as", "reshape", "reshape_as",
    "unsqueeze", "unsqueeze_", "resize_", "resize_as_", "to", "lift_fresh", "numpy_T", "permute", "squeeze", "squeeze_",
    "alias", "zeros", "zeros_like", "zero_", "fill_", "resolve_conj", "resolve_neg",
))
# Of a call on a CPU, what may pass elsewhere before it counts as another's work: a pause of a busy core.
_ELSEWHERE_SHARE = 0.1
# What a call on a CPU may spend in neither: Python between the two, slowed by being watched. A model that does nothing
# tells how slow (44 honest calls of PyTorch's modules spent 3.5 to 7 times as much between the two); it is the worker's
# word, so up to a most.
_PYTHONS_OWN_US, _MOST_OF_PYTHONS_US = 50.0, 150.0
_TIMES_IDLE = 6.0


class Span(NamedTuple):
    """One kernel of a launch: its name, and when it ran."""

    name: str
    start_us: float
    time_us: float


class TracedKernel(NamedTuple):
    """All launches of one name. `owner` is own, library, driver or unknown; `found_in` where an own one was found."""

    name: str
    time_us: float
    owner: str
    found_in: str = ""


@dataclass(frozen=True)
class Provenance:
    """`kind`, the share of the time in own kernels (None when unknown), the kernels with their owner, a sentence for
    each thing that a reader should know of how they were traced, the time in which anything ran, and on a GPU how many
    kernels, copies and fills the call was.
    """

    kind: str
    own_share: float | None
    kernels: tuple[TracedKernel, ...] = ()
    notes: tuple[str, ...] = ()
    busy_us: float = 0.0
    launched: int = 0
    neutral_us: float = 0.0  # of a call on a CPU: what PyTorch took to allocate, to view and to fill

    @property
    def has_own(self) -> bool:
        """Whether it launched what may be a kernel of its own: one traced to it, or to nobody."""
        return any(kernel.owner in ("own", "unknown") for kernel in self.kernels)


def least_of_processes(earlier: Provenance | None, later: Provenance) -> Provenance:
    """Of what two processes of one candidate ran, return that whose work is less its own; the earlier where they are alike."""
    if earlier is None:
        return later
    if later.kind == earlier.kind:
        return earlier
    least = min(earlier, later, key=lambda each: _CLAIMS.index(each.kind))
    note = f"its processes did not all run the same: one's work was {earlier.kind}, another's {later.kind}"
    return replace(least, notes=(*least.notes, note))


def middle_of_calls(provenances: Sequence[Provenance]) -> Provenance:
    """Of several calls of one process the one in the middle by what it claims as its own, the lesser of two."""
    ordered = sorted(provenances, key=_claim)
    return ordered[(len(ordered) - 1) // 2]


def least_of_calls(provenances: Sequence[Provenance]) -> Provenance:
    """Of several calls of one process that which claims least as its own."""
    return min(provenances, key=_claim)


def _claim(each: Provenance) -> tuple[int, float]:
    return _CLAIMS.index(each.kind), each.own_share or 0.0


def busy_us(spans: Collection[Span]) -> float:
    """For how long anything ran."""
    return sum(_time_of_each(spans, {span.name: "own" for span in spans}).values())


class Owners(NamedTuple):
    """Whose kernel each name is, with where an own one was found, and of which names an installed package has one too."""

    of: Mapping[str, tuple[str, str]]
    packages: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def own(self) -> list[str]:
        """The names that are the candidate's own."""
        return [name for name, (owner, _) in self.of.items() if owner == "own"]

    def without(self, others: Mapping[str, str]) -> Owners:
        """These, but of the names of `others` nobody knows whose they are; each has a reason."""
        unknown = {name: ("unknown", "") for name in others}
        notes = tuple(f"{bare_name(name)} {why}: whose it is is not known" for name, why in sorted(others.items()))
        return self._replace(of={**self.of, **unknown}, notes=(*self.notes, *notes))


def owners_of(
    names: Collection[str], evidence: OwnNames,
    shipped: Callable[[Collection[str]], Collection[str]] = shipped_by_pytorch,
    brought: Callable[[Collection[str]], Mapping[str, str]] = brought_by_packages,
) -> Owners:
    """Say whose the kernels called `names` are. `shipped` says which of some names PyTorch's libraries carry a kernel of, and
    `brought` of which an installed package has one as text, and in what file: both take a second.
    """
    owners = {name: _owner(name, evidence) for name in names}
    by_source = {name for name in names if owners[name][1] in ("triton", "source")}
    doubtful = [
        name for name, (owner, found_in) in owners.items()
        if owner == "unknown" or (owner == "own" and (_is_anybodys(name) or found_in == "source"))
    ]
    owners |= dict.fromkeys(shipped(doubtful) if doubtful else (), ("library", ""))
    asked = {name: {bare_name(name), *stems_of(bare_name(name))} for name in by_source}
    packages = brought(set().union(*asked.values())) if by_source else {}
    return Owners(owners | {name: ("unknown", "") for name in by_source if asked[name] & packages.keys()}, packages)


def kind_on_gpu(spans: Collection[Span], owners: Owners) -> Provenance:
    """Judge by when which kernel ran."""
    names = list(dict.fromkeys(span.name for span in spans))
    times = dict.fromkeys(names, 0.0)
    for span in spans:
        times[span.name] += span.time_us
    traced = tuple(TracedKernel(name, times[name], *owners.of[name]) for name in names)
    alone_us = _time_of_each(spans, {name: owner for name, (owner, _) in owners.of.items()})
    of_packages = [
        f"{name}: {file} has a kernel of that name too, so that nobody knows whose ran; give yours another name"
        for name, file in sorted(owners.packages.items())
    ]
    told = (*of_packages, *owners.notes)
    provenance = Provenance("unknown", None, traced, (*_notes(traced), *told), sum(alone_us.values()))
    total_us = provenance.busy_us - alone_us["driver"]
    if total_us <= 0:
        return provenance
    if alone_us["unknown"] / total_us >= 1 - OWN_SHARE:
        return provenance if told else replace(provenance, notes=(*provenance.notes, _told_of_nobodys(traced)))
    share = alone_us["own"] / total_us
    return replace(provenance, kind=_kind(share), own_share=share)


def kind_on_cpu(
    operators: Collection[dict[str, Any]], own_us: float, total_us: float, *, has_extension: bool,
    foreign: Collection[str] = (), others_us: float = 0.0, others_began: bool = False, called_back: bool = False,
    idle_us: float = 0.0, pytorchs: Collection[str] = ("aten",),
) -> Provenance:
    """Judge by times in µs, of which each counts once: in PyTorch's operators, in the candidate's extensions outside
    of those (`own_us`), and of the whole call. `foreign` is what may let its extensions reach a library unseen;
    `others_us` is what other threads of Python's had of a core meanwhile, `others_began` whether threads or processes
    were begun, and `called_back` whether an extension had Python run something: nobody looks at what those do.
    `idle_us` is what the call of a model that does nothing takes.
    `pytorchs` are the namespaces in which PyTorch itself has operators.
    """
    times = [(str(operator.get("name")), float(operator.get("us") or 0.0)) for operator in operators]
    figures = (own_us, total_us, others_us, idle_us, *(us for _, us in times))
    if not all(math.isfinite(time_us) and time_us >= 0 for time_us in figures):
        return Provenance("unknown", None, notes=("the profiler's times were no times",))
    neutral_us = sum(us for name, us in times if name in _NEUTRAL_OPERATORS)
    library_us = sum(us for name, us in times if name.partition("::")[0] in pytorchs and name not in _NEUTRAL_OPERATORS)
    if total_us <= 0:
        return Provenance("unknown", None)
    notes = ()
    if not has_extension:
        own_us = 0.0  # nothing of its own was built: what is not an operator is Python's overhead, or untraceable
    elif own_us > total_us + _PYTHONS_OWN_US:
        notes = (f"its extension is said to have worked for {own_us:.0f} of {total_us:.0f} µs",)
        own_us = 0.0
    elif foreign and own_us > 0:
        notes = (f"its extension takes {', '.join(sorted(foreign)[:3])} from elsewhere: what it calls is not known",)
        own_us = 0.0
    elif own_us > 0 and (others_began or others_us > max(LIBRARY_SHARE * total_us, _PYTHONS_OWN_US)):
        did = "began" if others_began else f"had a core for {others_us:.0f} of {total_us:.0f} µs"
        who = "other threads or processes of Python's"
        notes = (f"{who} {did} while its extension worked: what they did is not known",)
        own_us = 0.0
    elif own_us > 0 and called_back:
        notes = ("its extension had Python run something while it worked: what that did is not known",)
        own_us = 0.0
    known_us = own_us + library_us
    pythons_us = min(max(_TIMES_IDLE * idle_us, _PYTHONS_OWN_US), _MOST_OF_PYTHONS_US)
    elsewhere_us = total_us - known_us - neutral_us - pythons_us
    if known_us <= 0 or elsewhere_us > known_us:
        known = "neither in its extension nor in PyTorch's operators" if has_extension else "in no operator of PyTorch's"
        note = f"{max(elsewhere_us, 0.0):.0f} of {total_us:.0f} µs were spent {known}"
        return Provenance("unknown", None, notes=notes or (note,))
    anothers_us = max(elsewhere_us - _ELSEWHERE_SHARE * total_us, 0.0)
    share = own_us / (known_us + anothers_us)
    return Provenance(_kind(share), share if has_extension else None, notes=notes, neutral_us=neutral_us)


def _is_anybodys(name: str) -> bool:
    """Whether PyTorch may have compiled a kernel of that name as the candidate did, and nothing tells them apart."""
    return is_header_template(name) or is_anonymous(name) or is_mangled(name)


def _owner(name: str, evidence: OwnNames) -> tuple[str, str]:
    """The owner of a kernel, and where an own one was found."""
    if name.startswith(_NEUTRAL_KERNELS) or is_fill(name):
        return "driver", ""
    if is_shipped(name):
        return "library", ""
    if name in evidence.extension:
        return "own", "extension"
    if is_library_like(name):
        return "library", ""
    if name in evidence.strings and not is_anonymous(name):
        return "own", "strings"
    bare = bare_name(name)
    if name in evidence.triton:
        return "own", "triton"
    defined = evidence.source
    if bare in defined.kernels or (is_numbas(name) and bare in defined.functions) or stems_of(bare) & defined.stems:
        return "own", "source"
    return "unknown", ""


def _time_of_each(spans: Collection[Span], owners: Mapping[str, str]) -> dict[str, float]:
    """The time of each owner in µs. Where kernels ran side by side it is the library's if one of them is, else nobody
    knows whose if that holds for one of them; the driver's is what ran with no kernel beside it.
    """
    steps = sorted(
        [(span.start_us, 1, owners[span.name]) for span in spans]
        + [(span.start_us + span.time_us, -1, owners[span.name]) for span in spans]
    )
    running, times = dict.fromkeys(_BEFORE, 0), dict.fromkeys(_BEFORE, 0.0)
    last_us = 0.0
    for at_us, change, owner in steps:
        first = next((each for each in _BEFORE if running[each]), None)
        if first is not None:
            times[first] += at_us - last_us
        running[owner] += change
        last_us = at_us
    return times


def _notes(traced: Collection[TracedKernel]) -> list[str]:
    """What rests on less than the device code of a build."""
    notes = []
    for found_in, reason in (
        ("source", "compiled while it ran, and told to be its own by its source, which defines a kernel of that name"),
        ("strings", "told to be its own by the strings of its extension, for there is no cuobjdump here"),
    ):
        names = sorted({bare_name(kernel.name) for kernel in traced if kernel.found_in == found_in})
        if names:
            notes.append(f"{', '.join(names)}: {reason}")
    return notes


def _told_of_nobodys(traced: Collection[TracedKernel]) -> str:
    longest = sorted((kernel for kernel in traced if kernel.owner == "unknown"), key=lambda each: -each.time_us)
    names = list(dict.fromkeys(bare_name(kernel.name) for kernel in longest))[:2]
    return f"{' and '.join(names)}: neither its build nor a library that is known has a kernel of that name, so whose it is is not known"


def _kind(own_share: float) -> str:
    if own_share >= OWN_SHARE:
        return "custom"
    return "library" if own_share <= LIBRARY_SHARE else "mixed"
