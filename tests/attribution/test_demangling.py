"""Names from symbols, whatever a symbol stands for."""

from __future__ import annotations

import time

import pytest

from harness.attribution import demangling
from harness.attribution.demangling import LONGEST_NAME, demangled_names

PLAIN, ITS_NAME = "_Z9tril_tilePKfS0_Pfi", "tril_tile(float const*, float const*, float*, int)"
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(demangled_names(["_Z1fv"])["_Z1fv"] == "_Z1fv", reason="there is no C++ runtime that demangles"),
]


def doubling(levels):
    """The symbol of `tile<P<P<…>, P<…>>>(float const*)`, in which each level holds the one before twice."""
    def reference(number):
        digits = ""
        while number:
            number, digit = divmod(number, 36)
            digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit] + digits
        return f"S{digits or '0'}_"

    closing = "".join(f"{reference(level)}E" for level in range(1, levels + 1))
    return "_Z4tileI1P" + "IS0_" * levels + "IifE" + closing + "EvPKf"


def test_a_symbol_of_few_levels_is_the_name_that_it_stands_for():
    pair = "P<P<int, float>, P<int, float> >"
    twice = doubling(2)
    assert demangled_names([twice, PLAIN]) == {twice: f"void tile<P<{pair}, {pair} > >(float const*)", PLAIN: ITS_NAME}


def test_names_are_those_that_this_process_would_find():
    names = {symbol: demangling._demangled(symbol) for symbol in (PLAIN, doubling(2), doubling(5), "_Z", "no symbol")}
    assert demangled_names(names) == names
    assert names["_Z"] == "_Z"
    assert names["no symbol"] == "no symbol"


def test_a_symbol_that_stands_for_gigabytes_costs_neither_memory_nor_much_time(monkeypatch):
    import resource

    monkeypatch.setattr(demangling, "_SECONDS", 2)
    before_kb, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    endless = doubling(60)
    assert demangled_names([endless, PLAIN]) == {PLAIN: ITS_NAME, endless: endless}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 256 << 10
    assert time.monotonic() - began < 20


def test_a_long_name_is_cut_off_where_the_workers_is():
    symbol = doubling(12)
    assert len(demangled_names([symbol])[symbol]) == LONGEST_NAME


def test_a_symbol_beyond_all_length_is_left_as_it_is():
    symbol = f"_Z16000{'x' * 16_000}v"
    assert demangled_names([symbol]) == {symbol: symbol}


def test_a_symbol_with_a_line_break_stays_as_it_is_and_so_do_the_names_of_the_others():
    forged = "_Z" + "".join(f"S{n}_" for n in range(12)) + "\n_Z3onev"
    assert demangled_names([forged, "_Z3twov"]) == {forged: forged, "_Z3twov": "two()"}


def test_a_reference_with_zeros_before_its_number_costs_no_more_than_another(monkeypatch):
    import resource

    monkeypatch.setattr(demangling, "_SECONDS", 2)
    padded = doubling(36).replace("ES", f"ES{'0' * 12}")
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert demangled_names([padded, PLAIN])[PLAIN] == ITS_NAME
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 256 << 10


def test_symbols_beyond_their_number_or_their_length_together_stay_as_they_are(monkeypatch):
    symbols = [f"_Z{len(f'f{n}')}f{n}v" for n in range(2000)]
    assert demangled_names(symbols)[symbols[-1]] == "f1999()"
    monkeypatch.setattr(demangling, "_MOST_SYMBOLS", 1000)
    found = demangled_names(symbols)
    assert found[symbols[999]] == "f999()" and found[symbols[1000]] == symbols[1000]
    monkeypatch.setattr(demangling, "_MOST_BYTES", sum(map(len, symbols[:500])))
    found = demangled_names(symbols)
    assert found[symbols[499]] == "f499()" and found[symbols[500]] == symbols[500]


def test_thirty_million_letters_that_all_begin_a_reference_take_no_time():
    symbols = [f"_Z{n}{'S' * 15_000}" for n in range(2000)]
    began = time.monotonic()
    assert demangled_names(symbols) == dict(zip(symbols, symbols))
    assert time.monotonic() - began < 20
