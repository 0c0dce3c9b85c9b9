"""Which names PyTorch's libraries carry a kernel of, however they are spelled there."""

from __future__ import annotations

import pytest

from harness.attribution import installed_kernels
from harness.attribution.demangling import demangled_names
from harness.attribution.installed_kernels import carried_by, shipped_by_pytorch

SOFTMAX = "_ZN46_GLOBAL__N__7f4e21aa_11_SoftMax_cu_0a1b2c3d_4520softmax_warp_forwardIffLi10EEEvPT_PKT0_i"
CUTLASS = "_ZN7cutlass6KernelIiEEvT_"
NAMES = {
    "softmax": "void (anonymous namespace)::softmax_warp_forward<float, float, 10>(float*, float const*, int)",
    "cutlass": "void cutlass::Kernel<int>(int)",
}
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(demangled_names(["_Z1fv"])["_Z1fv"] == "_Z1fv", reason="there is no C++ runtime that demangles"),
]


@pytest.fixture
def libraries(tmp_path):
    """A folder with a library that carries `SOFTMAX` and `CUTLASS` among other things."""
    text = b"\x7f" * 90 + f"\0{SOFTMAX}\0junk {CUTLASS}x\0{CUTLASS}\0_ZN7cutlass7handlerEv\0".encode() + b"x" * 99
    (tmp_path / "libtorch_cuda.so").write_bytes(text)
    return tmp_path


def test_names_that_a_library_carries_are_found_and_others_are_not(libraries):
    others = [
        NAMES["softmax"].replace("10", "11"), NAMES["cutlass"].replace("int", "float"),
        "(anonymous namespace)::hidden(int)",
        "void mine::(anonymous namespace)::softmax_warp_forward<float, float, 10>(float*, float const*, int)",
    ]
    assert carried_by(libraries, [*NAMES.values(), *others]) == set(NAMES.values())
    assert carried_by(libraries / "missing", NAMES.values()) == set()


def test_a_decoy_of_another_spelling_has_the_same_name_and_so_is_found(libraries):
    decoy = "_ZN36_GLOBAL__N__424dd0fe_4_k_cu_99c9e56520softmax_warp_forwardIffLi10EEEvPfPKfi"
    assert demangled_names([decoy, SOFTMAX]) == {decoy: NAMES["softmax"], SOFTMAX: NAMES["softmax"]}
    assert carried_by(libraries, [NAMES["softmax"]]) == {NAMES["softmax"]}


def test_a_symbol_too_long_to_be_demangled_is_compared_as_it_is(libraries):
    symbol = "_ZN7cutlass" + "4tile" * 300 + "Ev"
    (libraries / "libtorch_cuda_linalg.so").write_bytes(f"\0{symbol}\0".encode())
    assert carried_by(libraries, [symbol, symbol.replace("tile", "tail")]) == {symbol}


def test_an_empty_library_carries_nothing_and_hides_no_other(libraries):
    (libraries / "libtorch_cuda_a.so").touch()
    (libraries / "libtorch_cuda_b.so").symlink_to("nowhere")
    assert carried_by(libraries, NAMES.values()) == set(NAMES.values())


def test_what_too_much_is_called_alike_counts_as_carried(libraries, monkeypatch):
    monkeypatch.setattr(installed_kernels, "_MOST_ALIKE", 0)
    other = "void cutlass::Kernel<float>(float)"
    assert carried_by(libraries, [other]) == {other}


def test_what_was_found_is_looked_for_once_and_what_was_not_each_time(monkeypatch):
    """A name that is not found may be a moment's doing: a demangler that was slow."""
    looked_for = []

    def carried(folder, names):
        looked_for.append(sorted(names))
        return {"softmax", "tile"}.intersection(names)

    monkeypatch.setattr(installed_kernels, "carried_by", carried)
    monkeypatch.setattr(installed_kernels, "_carried", set())
    for names, found in ((["softmax", "mine"], {"softmax"}), (["softmax"], {"softmax"}), (["softmax", "mine"], {"softmax"})):
        assert shipped_by_pytorch(names) == found
    assert looked_for == [["mine", "softmax"], ["mine"]]
    monkeypatch.setattr(installed_kernels, "_MOST_KEPT", 0)
    assert shipped_by_pytorch(["softmax", "tile"]) == {"softmax", "tile"}
    assert installed_kernels._carried == {"tile"}, "no more are kept than so many"
