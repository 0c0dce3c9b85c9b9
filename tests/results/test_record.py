"""What a record lets in, and what it says of itself."""

from __future__ import annotations

import dataclasses
import json

import numpy
import pytest

from harness.model.sizes_text import sizes_text
from harness.model.verdict import ReasonCode, Status
from harness.results.record import FIELDS, LONGEST_TEXT, SCHEMA_VERSION, Record


def test_every_field_is_declared_with_type_group_and_meaning():
    assert [column.name for column in FIELDS] == [field.name for field in dataclasses.fields(Record)]
    for column in FIELDS:
        assert column.doc and column.group, column.name
        assert column.type in (str, int, float, bool, Status, ReasonCode), column.name


def test_a_unit_in_a_name_is_the_unit_of_the_field():
    suffixes = {"_us": "us", "_bytes": "bytes", "_w": "W", "_mhz": "MHz", "_s": "s", "_u": "u"}
    for column in FIELDS:
        suffix = "_" + column.name.rsplit("_", 1)[-1]
        if suffix in suffixes and not column.name.startswith("gbytes"):
            assert column.unit == suffixes[suffix], column.name


def test_what_was_not_measured_is_none_and_not_zero(make_record):
    record = make_record()
    assert record.time_us is None and record.other_processes is None and record.reason is None
    assert make_record(time_us=float("nan"), err_max_u=float("inf")).to_json()["err_max_u"] is None


def test_json_keys_are_the_fields_in_their_order_whatever_was_measured(make_record):
    bare, full = make_record().to_json(), make_record(time_us=2.5, rank=1, cached=True).to_json()
    assert list(bare) == list(full) == [column.name for column in FIELDS]
    assert json.loads(json.dumps(full, allow_nan=False)) == full
    assert (full["status"], full["reason_code"], full["schema_version"]) == ("ok", "", SCHEMA_VERSION)


def test_numpy_scalars_become_plain_numbers(make_record):
    record = make_record(
        time_us=numpy.float32(2.5), launches=numpy.int64(40), cached=numpy.bool_(True), rounds=20.0, watts=700
    )
    values = (record.time_us, record.launches, record.cached, record.rounds, record.watts)
    assert [type(value) for value in values] == [float, int, bool, int, float]


@pytest.mark.parametrize(
    "changes",
    [
        {"time_us": "2.5"},
        {"launches": 2.5},
        {"cached": 1},
        {"candidate": None},
        {"sizes": {"M": 1}},
        {"time_us": True},
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_the_fields_name(make_record, changes):
    with pytest.raises(TypeError, match=next(iter(changes))):
        make_record(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "passed"},
        {"status": "incorrect", "reason_code": "noisy"},
        {"status": "incorrect", "reason_code": "wrong_values", "rank": 1},
        {"role": "baseline", "rank": 1},
        {"role": "judge"},
    ],
)
def test_a_status_code_role_or_rank_outside_the_rules_is_refused(make_record, changes):
    with pytest.raises(ValueError):
        make_record(**changes)


def test_a_candidates_words_cannot_drive_the_terminal(make_record):
    record = make_record(reason="\x1b[2Jall \x1b]0;fine\x07\u202e\r\nline two\ttab \ud800")
    assert record.reason == "all ]0;fine\nline two\ttab ?"
    assert len(make_record(reason="x" * 10**6).reason) == LONGEST_TEXT


def test_sizes_keep_the_order_of_the_yaml():
    assert sizes_text({"M": 2048, "K": 8192}) == "M=2048 K=8192"
    assert sizes_text({}) == ""


@pytest.mark.parametrize("figure", ["time_us", "speedup", "rank"])
def test_a_checked_row_has_no_time_no_speedup_and_no_rank(make_record, figure):
    checked = {"status": "checked", "reason_code": "interpreted", "reason": "right at M=31"}
    assert make_record(**checked).status is Status.CHECKED
    with pytest.raises(ValueError, match="checked"):
        make_record(**checked, **{figure: 1})
