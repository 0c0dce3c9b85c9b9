"""PyTorch's own numbers for a model's parameters, bit for bit, drawn by several threads.

PyTorch draws on a CPU with one core: 1 G parameters take 4 to 8 s, once in the judge and once in each worker. Here each
thread draws a piece of the tensor, from the state that the generator has come to by then, as `mersenne_twister` knows
it. A piece ends in the state that the next began with, or else PyTorch draws the tensor again in the usual way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch

from harness.protocol.mersenne_twister import jump_of, state_after

_LEAST, _LEAST_PIECE = 1 << 24, 1 << 22  # elements; smaller draws are over before a jump is
_WORDS_OF_ONE = {torch.float32: 1, torch.float64: 2, torch.float16: 1, torch.bfloat16: 1}
# Elements that begin where a state of the generator does. PyTorch makes normal numbers of sixteen at a time.
_UNIT = 624 * 16
# PyTorch's CPUGeneratorImplStateLegacy: words left, place of the next, and 624 words, of 8 bytes each.
_LEFT, _NEXT, _STATE = slice(8, 12), slice(16, 24), slice(24, 24 + 8 * 624)
_NAMES = ("uniform_", "normal_")


@contextmanager
def entered() -> Iterator[None]:
    """While entered, `uniform_` and `normal_`, by which `torch.nn.init` draws, do so with all cores on the CPU.

    They are replaced on the class: a mode would change how PyTorch calls and compiles everything else.
    """
    names = [name for name in _NAMES if name not in torch.Tensor.__dict__]
    replaced = {name: _in_pieces(name, getattr(torch.Tensor, name)) for name in names}
    for name, draw in replaced.items():
        setattr(torch.Tensor, name, draw)
    try:
        yield
    finally:
        for name, draw in replaced.items():
            if torch.Tensor.__dict__.get(name) is draw:  # and nobody has put another in its place
                delattr(torch.Tensor, name)


def _in_pieces(name: str, ordinary: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(ordinary)
    def draw(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        try:
            if _is_large_and_plain(self) and kwargs.get("generator") is None:
                kwargs.pop("generator", None)
                if _draw(self, lambda piece, source: ordinary(piece, *args, generator=source, **kwargs)):
                    return self
        except Exception:  # PyTorch says what is wrong with the call, or draws where only this way has failed
            pass
        if not torch.overrides.has_torch_function((self,)) or torch.Tensor.__dict__.get(name) is not draw:
            return ordinary(self, *args, **kwargs)
        delattr(torch.Tensor, name)  # PyTorch shows a mode, or a class of its own, what it sees by this name
        try:
            return ordinary(self, *args, **kwargs)
        finally:
            setattr(torch.Tensor, name, draw)

    return draw


def _is_large_and_plain(tensor: torch.Tensor) -> bool:
    return (
        not torch.jit.is_tracing()  # first, since a trace records each question
        and type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.numel() >= _LEAST and tensor.is_cpu
        and tensor.layout is torch.strided and tensor.dtype in _WORDS_OF_ONE and tensor.is_contiguous()
        and not (tensor.requires_grad and torch.is_grad_enabled())
        and not torch.overrides.has_torch_function((tensor,)) and not torch._C._len_torch_dispatch_stack()
    )


def _draw(tensor: torch.Tensor, ordinary: Callable[[torch.Tensor, torch.Generator], Any]) -> bool:
    """Draw `tensor` in pieces and move the default generator on. False where that cannot be trusted, or is no use."""
    count = min(_cores(), tensor.numel() // _LEAST_PIECE, 64)
    if count < 2:
        return False
    units = -(-tensor.numel() // (count * _UNIT))
    pieces = tensor.detach().view(-1).split(units * _UNIT)
    begins = [_with_its_place(torch.default_generator.get_state())]

    def draw_piece(piece: torch.Tensor, begin: torch.Tensor) -> torch.Tensor:
        source = torch.Generator()
        source.set_state(begin)
        with torch.no_grad():
            ordinary(piece, source)
        return source.get_state()

    with ThreadPoolExecutor(count) as threads:
        drawn = [threads.submit(draw_piece, pieces[0], begins[0])]
        jump = jump_of(units * 16 * _WORDS_OF_ONE[tensor.dtype])
        for piece in pieces[1:]:
            begins.append(_later(begins[-1], jump))
            drawn.append(threads.submit(draw_piece, piece, begins[-1]))
    ends = [each.result() for each in drawn]
    if not all(torch.equal(end, begin) for end, begin in zip(ends, begins[1:])):
        return False
    torch.default_generator.set_state(ends[-1])
    return True


def _with_its_place(state: torch.Tensor) -> torch.Tensor:
    """`state`, a seed's made like any other: none of its words is left, so that the place behind the last is next."""
    if int(state[_LEFT].view(torch.int32)) == 1:
        state[_NEXT].view(torch.int64).fill_(624)
    return state


def _later(state: torch.Tensor, jump: int) -> torch.Tensor:
    later = state.clone()
    words = state_after(state[_STATE].view(torch.int64).numpy(), jump)
    later[_STATE].view(torch.int64).copy_(torch.from_numpy(words.astype("int64")))
    return later


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
