"""From the kernels or operators of a profiled launch to a kind."""

from __future__ import annotations

import math

import pytest

from harness.attribution.kernel_ownership import Provenance, Span, least_of_processes, kind_on_cpu, kind_on_gpu, owners_of
from harness.attribution.source_names import SourceNames
from harness.attribution.symbols import OwnNames

MINE = "tiled(float const*, float const*, float*, int)"
THEIRS = "ampere_sgemm_128x64_nn"
CUBLAS = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)"
CUTLASS = "void cutlass::Kernel2<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaPipelined<int>, int> >(int)"
HIDDEN = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>(float*, float const*, int)"
EVIDENCE = OwnNames(
    extension=frozenset({MINE, CUTLASS, HIDDEN}),
    triton=frozenset({"tril_kernel"}),
    source=SourceNames(kernels=frozenset({"runtime_kernel"}), functions=frozenset({"tril_kernel", "numba_kernel"})),
)


def kind_of(spans, evidence, *looked_up):
    """The kind of what ran, with names looked up by these functions."""
    return kind_on_gpu(spans, owners_of(list(dict.fromkeys(span.name for span in spans)), evidence, *looked_up))


def judged(*kernels, evidence=EVIDENCE, shipped=()):
    spans, now_us = [], 0.0
    for name, time_us in kernels:
        spans.append(Span(name, now_us, time_us))
        now_us += time_us + 1.0
    # What installed packages bring is test_installed_kernels': to read them all takes seconds.
    return kind_of(spans, evidence, lambda names: set(shipped) & set(names), lambda names: {})


def owner_of(name, **changes):
    (kernel,) = judged((name, 10.0), **changes).kernels
    return kernel.owner


@pytest.mark.parametrize(
    ("own_us", "library_us", "kind"),
    [(100, 0, "custom"), (95, 5, "custom"), (94, 6, "mixed"), (50, 50, "mixed"), (6, 94, "mixed"), (5, 95, "library"),
     (0, 100, "library")],
)
def test_the_share_of_the_time_in_own_kernels_decides(own_us, library_us, kind):
    found = judged((MINE, own_us), (THEIRS, library_us))
    assert found.kind == kind
    assert found.own_share == pytest.approx(own_us / 100)


def test_every_kernel_is_listed_with_its_owner_and_where_an_own_one_was_found():
    found = judged((MINE, 3.0), (THEIRS, 1.0), ("Memset (Device)", 9.0))
    assert found.kernels == (
        (MINE, 3.0, "own", "extension"), (THEIRS, 1.0, "library", ""), ("Memset (Device)", 9.0, "driver", ""),
    )
    assert found.busy_us == 13.0


def test_launches_of_one_kernel_are_added_up():
    assert judged((MINE, 3.0), (THEIRS, 1.0), (MINE, 2.0)).kernels[0] == (MINE, 5.0, "own", "extension")


@pytest.mark.parametrize(
    ("spans", "share", "busy_us"),
    [
        ([Span(THEIRS, 0.0, 100.0)] + [Span(MINE, 0.0, 100.0)] * 24, 0.0, 100.0),
        ([Span(THEIRS, 0.0, 100.0), Span(MINE, 50.0, 150.0)], 0.5, 200.0),
        ([Span(MINE, 0.0, 100.0), Span(MINE, 20.0, 100.0), Span(MINE, 150.0, 50.0)], 1.0, 170.0),
        ([Span("Memset (Device)", 0.0, 500.0), Span(MINE, 400.0, 100.0)], 1.0, 500.0),
    ],
    ids=["waiting beside a library", "overlapping one", "side by side with itself", "beside a fill"],
)
def test_what_runs_beside_a_librarys_kernel_takes_nothing_away_from_it(spans, share, busy_us):
    found = kind_of(spans, EVIDENCE, lambda names: set())
    assert found.own_share == pytest.approx(share)
    assert found.busy_us == pytest.approx(busy_us)


def test_copies_and_fills_count_for_nobody():
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, Array<char*, 1> >(int)"
    assert judged((MINE, 1.0), ("Memcpy DtoD (Device -> Device)", 99.0), (fill, 99.0)).kind == "custom"


@pytest.mark.parametrize(
    "listed", [[], [("Memset (Device)", 5.0)], [(MINE, 0.0)]], ids=["nothing ran", "only a fill", "no time"],
)
def test_without_any_time_the_kind_is_unknown(listed):
    assert judged(*listed).kind == "unknown"


def test_a_kernel_that_nobody_built_here_is_not_the_candidates_whatever_its_name():
    assert judged(("my_very_own_kernel", 10.0)).kind == "unknown"


def test_kernels_that_are_nobodys_are_named_the_longest_first():
    found = judged(("strange<1>(int)", 10.0), ("void stranger<2>(float*)", 30.0), ("strangest", 5.0), (CUBLAS, 40.0))
    assert found.kind == "unknown"
    assert found.notes == (
        "stranger and strange: neither its build nor a library that is known has a kernel of that name, so whose it is is not known",
    )


@pytest.mark.parametrize("name", [THEIRS, CUBLAS, "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "triton_tem_fused_mm_0"])
def test_a_decoy_of_a_librarys_name_stays_a_library_in_every_kind_of_evidence(name):
    decoys = OwnNames(
        extension=frozenset({name}), strings=frozenset({name}), triton=frozenset({name}),
        source=SourceNames(kernels=frozenset({name}), functions=frozenset({name})),
    )
    assert owner_of(name, evidence=decoys) == "library"


def test_cutlass_that_the_candidates_own_build_instantiated_is_its_own():
    assert owner_of(CUTLASS) == "own"


def test_cutlass_that_pytorch_carries_as_well_is_not():
    assert owner_of(CUTLASS, shipped={CUTLASS}) == "library"


def test_cutlass_that_no_build_instantiated_is_a_librarys_whatever_a_source_or_a_cache_says():
    weak = OwnNames(strings=frozenset({CUTLASS}), source=SourceNames(kernels=frozenset({"Kernel2"})))
    assert owner_of(CUTLASS, evidence=weak) == "library"


def test_a_name_in_an_anonymous_namespace_is_its_own_unless_pytorch_has_one_like_it():
    assert owner_of(HIDDEN) == "own"
    assert owner_of(HIDDEN, shipped={HIDDEN}) == "library"
    assert owner_of(HIDDEN, evidence=OwnNames()) == "unknown"
    assert owner_of(HIDDEN, evidence=OwnNames(), shipped={HIDDEN}) == "library"


def test_a_name_in_an_anonymous_namespace_is_asked_for_where_only_the_source_says_that_it_is_its_own():
    written = OwnNames(source=SourceNames(kernels=frozenset({"softmax_warp_forward"})))
    assert owner_of(HIDDEN, evidence=written) == "own"
    assert owner_of(HIDDEN, evidence=written, shipped={HIDDEN}) == "library"


def test_a_symbol_too_long_for_the_profiler_to_demangle_is_asked_for_as_well():
    symbol = "_ZN7cutlass" + "4tile" * 300 + "Ev"
    built = OwnNames(extension=frozenset({symbol}))
    assert owner_of(symbol, evidence=built) == "own"
    assert owner_of(symbol, evidence=built, shipped={symbol}) == "library"


def test_pytorchs_libraries_are_searched_for_doubtful_names_only():
    asked = []
    listed = [Span(name, 0.0, 1.0) for name in (MINE, CUTLASS, THEIRS)]
    kind_of(listed, EVIDENCE, lambda names: asked.append(list(names)) or set())
    assert asked == [[CUTLASS]]
    kind_of(listed[:1], EVIDENCE, lambda names: pytest.fail("searched for nothing"))


def test_an_own_name_that_a_library_might_have_is_own_by_its_build_and_not_by_its_source():
    built = OwnNames(extension=frozenset({"sm90_gemm_kernel"}))
    named = OwnNames(source=SourceNames(kernels=frozenset({"sm90_gemm_kernel"})))
    assert owner_of("sm90_gemm_kernel", evidence=built) == "own"
    assert owner_of("sm90_gemm_kernel", evidence=named) == "library"


def test_a_triton_kernel_is_known_by_its_bare_name():
    assert judged(("tril_kernel", 10.0)).kind == "custom"


@pytest.mark.parametrize(
    "name", ["runtime_kernel", "runtime_kernel(float*)", "void tiles::runtime_kernel<32>(float*)",
             "cudapy::__main__::numba_kernel[abi:v1](Array<float, 1, C, mutable, aligned>)"]
)
def test_a_kernel_compiled_at_run_time_is_its_own_by_its_source_and_the_record_says_so(name):
    found = judged((name, 10.0))
    assert found.kind == "custom"
    assert "compiled while it ran" in found.notes[0]


def test_a_python_function_alone_makes_no_kernel_its_own():
    assert owner_of("numba_kernel") == "unknown"


def test_what_rests_on_strings_says_so():
    found = judged((MINE, 10.0), evidence=OwnNames(strings=frozenset({MINE})))
    assert found.kind == "custom"
    assert found.notes == ("tiled: told to be its own by the strings of its extension, for there is no cuobjdump here",)


@pytest.mark.parametrize(
    ("own_us", "library_us", "has_extension", "kind"),
    [(99_000, 0, True, "custom"), (96_000, 3_000, True, "custom"), (50_000, 50_000, True, "mixed"),
     (3_000, 97_000, True, "library"), (0, 97_000, False, "library"), (0, 10_000, False, "unknown"),
     (0, 30_000, True, "unknown"), (40_000, 0, True, "unknown")],
)
def test_on_a_cpu_the_time_in_the_extension_and_in_operators_decides(own_us, library_us, has_extension, kind):
    operators = [{"name": "aten::mm", "us": library_us}]
    assert kind_on_cpu(operators, own_us, 100_000.0, has_extension=has_extension).kind == kind


@pytest.mark.parametrize(("elsewhere_us", "kind"), [(0, "custom"), (9_000, "custom"), (20_000, "mixed"), (48_000, "mixed")])
def test_on_a_cpu_what_passes_elsewhere_is_not_its_own_beyond_what_a_pause_takes(elsewhere_us, kind):
    assert kind_on_cpu([], 100_000.0 - elsewhere_us, 100_000.0, has_extension=True).kind == kind


@pytest.mark.parametrize("name", ["aten::tanh", "aten::topk", "aten::triu", "aten::tril", "aten::select_scatter"])
def test_on_a_cpu_an_operator_whose_name_begins_like_a_harmless_one_is_a_librarys(name):
    assert kind_on_cpu([{"name": name, "us": 50_000.0}], 50_000.0, 100_000.0, has_extension=True).kind == "mixed"


def test_on_a_cpu_the_interpreters_own_time_does_not_spoil_a_small_call():
    assert kind_on_cpu([], 12.0, 60.0, has_extension=True).kind == "custom"


@pytest.mark.parametrize(("idle_us", "kind"), [(0.0, "mixed"), (12.0, "mixed"), (25.0, "custom"), (math.nan, "unknown")])
def test_on_a_cpu_that_is_slow_at_python_the_interpreters_own_time_is_longer(idle_us, kind):
    assert kind_on_cpu([], 800.0, 1050.0, has_extension=True, idle_us=idle_us).kind == kind


def test_on_a_cpu_no_candidate_makes_the_interpreters_own_time_as_long_as_it_likes():
    assert kind_on_cpu([], 800.0, 1150.0, has_extension=True, idle_us=1e6).kind == "mixed"


def test_on_a_cpu_reserving_memory_and_looking_at_it_otherwise_is_no_arithmetic():
    operators = [{"name": name, "us": 30.0} for name in ("aten::empty", "aten::view", "aten::transpose", "aten::zero_")]
    assert kind_on_cpu(operators, 100.0, 250.0, has_extension=True).kind == "custom"


def test_on_a_cpu_an_extension_that_may_call_anything_is_not_taken_for_what_it_says():
    found = kind_on_cpu([], 1000.0, 1000.0, has_extension=True, foreign=["sgemm_", "dlsym"])
    assert found.kind == "unknown"
    assert found.notes == ("its extension takes dlsym, sgemm_ from elsewhere: what it calls is not known",)
    operators = [{"name": "aten::mm", "us": 900.0}]
    assert kind_on_cpu(operators, 50.0, 1000.0, has_extension=True, foreign=["dlsym"]).kind == "library"


def test_on_a_cpu_operators_of_pytorchs_are_a_librarys_and_others_nobodys():
    operators = [{"name": "mkldnn::_linear_pointwise", "us": 900.0}]
    assert kind_on_cpu(operators, 20.0, 1000.0, has_extension=True, pytorchs={"aten", "mkldnn"}).kind == "library"
    assert kind_on_cpu(operators, 20.0, 1000.0, has_extension=True).kind == "unknown"


def test_on_a_cpu_an_extension_that_has_python_run_something_is_not_known():
    found = kind_on_cpu([], 1000.0, 1000.0, has_extension=True, called_back=True)
    assert found.kind == "unknown"
    assert "had Python run something" in found.notes[0]


def test_on_a_cpu_time_in_an_extension_is_its_own_only_while_nobody_else_works():
    assert kind_on_cpu([], 1000.0, 1000.0, has_extension=True, others_us=45.0).kind == "custom"
    beside = kind_on_cpu([], 1000.0, 1000.0, has_extension=True, others_us=900.0)
    assert beside.kind == "unknown"
    assert "had a core for 900 of 1000 µs" in beside.notes[0]
    begun = kind_on_cpu([], 1000.0, 1000.0, has_extension=True, others_began=True)
    assert begun.kind == "unknown"
    assert "began while its extension worked" in begun.notes[0]
    assert kind_on_cpu([], 1000.0, 1000.0, has_extension=True, others_us=math.inf).kind == "unknown"


@pytest.mark.parametrize("times", [(0.0, 0.0), (math.nan, 100.0), (10.0, math.inf), (-5.0, 100.0)])
def test_on_a_cpu_a_call_of_no_time_is_unknown(times):
    assert kind_on_cpu([], *times, has_extension=True).kind == "unknown"


def test_of_several_processes_the_one_that_ran_least_of_its_own_counts_and_the_row_says_so():
    own, library = Provenance("custom", 1.0), Provenance("library", 0.0)
    assert least_of_processes(None, own) is own
    assert least_of_processes(own, Provenance("custom", 0.97)) is own
    for found in (least_of_processes(own, library), least_of_processes(library, own)):
        assert (found.kind, found.own_share) == ("library", 0.0)
        assert "did not all run the same" in found.notes[0]
    assert least_of_processes(own, Provenance("unknown", None)).kind == "unknown"


def test_on_a_cpu_an_extension_that_worked_for_longer_than_the_call_did_not():
    found = kind_on_cpu([{"name": "aten::mm", "us": 1000.0}], 25_000.0, 1100.0, has_extension=True)
    assert (found.kind, found.own_share) == ("library", 0.0)
    assert found.notes == ("its extension is said to have worked for 25000 of 1100 µs",)


def test_on_a_cpu_what_reserves_memory_is_neither_its_own_nor_anothers():
    assert kind_on_cpu([{"name": "aten::zero_", "us": 3000.0}], 2000.0, 5100.0, has_extension=True).kind == "custom"


@pytest.mark.parametrize("name", [
    "kernel_cutlass_cute_tril_tensorptrf32genericoi641_0", "tile_kernel", "tile_kernel_1",
    "candidate_mine::numba_kernel[abi:v1][abi:cw51c](Array<float, 1, C, mutable, aligned>)",
])
def test_a_kernel_that_a_language_in_python_names_after_a_function_of_the_source_is_its_own(name):
    stems = frozenset({"kernel_cutlass_cute_tril", "tile_kernel"})
    written = OwnNames(source=SourceNames(functions=frozenset({"numba_kernel", "cute_tril", "tile"}), stems=stems))
    assert owner_of(name, evidence=written) == "own"
    assert owner_of(name, evidence=written, shipped={name}) == "library"
    bare = OwnNames(source=SourceNames(functions=frozenset({"cute_tril", "tile"})))
    assert owner_of(name, evidence=bare) == "unknown"


def test_a_number_behind_the_name_of_a_function_of_cudas_makes_another_kernel():
    assert owner_of("runtime_kernel_1") == "unknown"
