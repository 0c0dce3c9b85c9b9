"""Who gets a rank."""

from __future__ import annotations

from harness.results.ranking import rank


def ranks(records, **options):
    return {record.candidate: record.rank for record in rank(records, ["custom"], **options)}


def test_ok_candidates_are_ranked_by_time_and_nobody_else_is(make_record):
    def ok(name, time_us, **changes):
        return make_record(
            **({"candidate": name, "time_us": time_us, "kind": "custom", "precision_class": "fp32"} | changes)
        )

    records = [
        ok("slow", 9.0),
        ok("fast", 1.0),
        ok("eager", 0.5, role="baseline"),
        ok("library", 0.1, kind="library"),
        ok("untraced", 0.1, kind="unknown"),
        ok("unseen", 0.1, kind=None),
        ok("other_class", 0.1, precision_class="tf32"),
        ok("untimed", None),
        ok("noisy", 0.1, status="unsure", reason_code="noisy", reason="noisy"),
        ok("wrong", 0.1, status="incorrect", reason_code="wrong_values", reason="wrong"),
    ]
    assert {name: place for name, place in ranks(records).items() if place} == {"fast": 1, "slow": 2}


def test_a_problem_that_opens_a_class_ranks_that_class_alone(make_record):
    records = [
        make_record(candidate="eager", role="baseline", time_us=3.0, kind="library", precision_class="fp32"),
        make_record(candidate="exact", time_us=2.0, kind="custom", precision_class="fp32"),
        make_record(candidate="tensor", time_us=1.0, kind="custom", precision_class="tf32"),
    ]
    assert ranks(records) == {"eager": None, "exact": 1, "tensor": None}
    assert ranks(records, precision_class="tf32") == {"eager": None, "exact": None, "tensor": 1}


def test_without_an_eager_row_the_class_is_the_one_that_all_share(make_record):
    def ok(name, precision_class):
        return make_record(candidate=name, time_us=1.0, kind="custom", precision_class=precision_class)

    assert ranks([ok("a", "fp32"), ok("b", "fp32")]) == {"a": 1, "b": 2}
    assert ranks([ok("a", "fp32"), ok("b", "tf32")]) == {"a": None, "b": None}


def test_sizes_are_ranked_apart(make_record):
    records = [
        make_record(candidate=f"{name}{sizes}", sizes=sizes, time_us=time_us, kind="custom")
        for name, sizes, time_us in (("a", "M=1", 1.0), ("b", "M=1", 2.0), ("a", "M=2", 3.0))
    ]
    assert ranks(records) == {"aM=1": 1, "bM=1": 2, "aM=2": 1}


def test_ranking_again_takes_old_ranks_away(make_record):
    record = make_record(time_us=1.0, kind="library", rank=1)
    assert [each.rank for each in rank([record], ["custom"])] == [None]


def test_a_rank_counts_what_the_judges_clock_does_not_vouch_for(make_record):
    def ok(name, time_us, unvouched_us):
        return make_record(candidate=name, time_us=time_us, unvouched_us=unvouched_us, kind="custom", precision_class="fp32")

    records = [ok("claims_less", 80.0, 30.0), ok("plain", 100.0, 0.0), ok("of_before", 105.0, None), ok("slow", 120.0, 0.0)]
    assert [each.candidate for each in rank(records, ("custom",))] == ["plain", "of_before", "claims_less", "slow"]
