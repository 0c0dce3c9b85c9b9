"""MT19937, the generator behind PyTorch's draws on a CPU: its state a number of words later, without drawing them.

Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998, have the recurrence and its characteristic polynomial.
Haramoto, Matsumoto, Nishimura, Panneton and L'Ecuyer, "Efficient jump ahead for F2-linear random number generators",
INFORMS J. Computing 20(3), 2008, have the jump. A polynomial over GF(2) is an int here, with its coefficients as bits.
"""

from __future__ import annotations

from functools import cache

import numpy

WORDS = 624
_MIDDLE, _DEGREE, _TWIST = 397, 19937, 0x9908B0DF
_AT_ONCE = 128  # windows that are summed in one step: what fits a core's cache


@cache
def jump_of(states: int) -> int:
    """The polynomial of a jump by `states` times 624 words: x to that power, modulo the characteristic polynomial."""
    power = 1
    for bit in format(states, "b"):
        power = _remainder(int(format(power, "b"), 4))  # its square: a square over GF(2) has its bits two apart
        if bit == "1":
            power = _remainder(power << WORDS)
    # No word may count that only a seed has written: the recurrence does not hold for the low bits of the first.
    return power ^ sum(1 << term for term in _characteristic()) if power & 1 else power


def state_after(state: numpy.ndarray, jump: int) -> numpy.ndarray:
    """The 624 words (uint32) that follow those of `state` by `jump`."""
    windows = numpy.lib.stride_tricks.sliding_window_view(_words_from(state, _DEGREE + 1 + WORDS), WORDS)
    terms = numpy.flatnonzero(numpy.frombuffer(format(jump, "b")[::-1].encode(), numpy.uint8) == ord("1"))
    sums = numpy.zeros(WORDS, numpy.uint32)
    for begin in range(0, len(terms), _AT_ONCE):
        sums ^= numpy.bitwise_xor.reduce(windows[terms[begin:begin + _AT_ONCE]], axis=0)
    return sums


def _words_from(state: numpy.ndarray, count: int) -> numpy.ndarray:
    """`state` and the words after it, by the recurrence, as they are before tempering."""
    step = WORDS - _MIDDLE  # so many words follow from those before them alone
    words = numpy.empty(count + step, numpy.uint32)
    words[:WORDS] = state
    for at in range(WORDS, count, step):
        first, second = words[at - WORDS:at - WORDS + step], words[at - WORDS + 1:at - WORDS + 1 + step]
        joined = (first & numpy.uint32(0x80000000)) | (second & numpy.uint32(0x7FFFFFFF))
        words[at:at + step] = words[at - step:at] ^ (joined >> numpy.uint32(1)) ^ (
            (second & numpy.uint32(1)) * numpy.uint32(_TWIST)
        )
    return words[:count]


@cache
def _characteristic() -> frozenset[int]:
    """The exponents of the characteristic polynomial's terms, 135 in all; with u = x^623 + x^396 it is
    (x^624 + x^397)(u^31 + a_0 u^30 + … + a_30) + a_31, where a_i are the bits of the twist.
    """
    inner: frozenset[int] = frozenset()
    power: frozenset[int] = frozenset({0})
    for bit in range(30, -1, -1):
        inner ^= power if _TWIST >> bit & 1 else frozenset()
        power = _product(power, (WORDS - 1, _MIDDLE - 1))
    return _product(inner ^ power, (WORDS, _MIDDLE)) ^ {0}


def _product(terms: frozenset[int], factor: tuple[int, int]) -> frozenset[int]:
    one, other = (frozenset(term + each for term in terms) for each in factor)
    return one ^ other


def _remainder(polynomial: int) -> int:
    """`polynomial` modulo the characteristic one, by folding what is above its degree down again."""
    lower = sorted(_characteristic() - {_DEGREE})
    while above := polynomial >> _DEGREE:
        polynomial &= (1 << _DEGREE) - 1
        for term in lower:
            polynomial ^= above << term
    return polynomial
