"""Which cases --only and --skip leave, and what is said of a glob that matches nothing."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError, NothingToRun
from harness.selftest.corpus import chosen, read_corpus


@pytest.fixture
def cases(tmp_path, write_case):
    for place in ("clock/side_stream", "clock/lazy_tensor", "answer/guess"):
        write_case(place)
    write_case("honest/side_stream_joined", expected="ok/", fools="nothing")
    return read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("only", "skip", "names"),
    [
        ([], [], ["lazy_tensor", "side_stream", "guess", "side_stream_joined"]),
        (["clock/*"], [], ["lazy_tensor", "side_stream"]),
        (["side_*", "guess.py"], [], ["side_stream", "guess", "side_stream_joined"]),
        (["side_*"], ["honest/*"], ["side_stream"]),
        ([], ["clock/*"], ["guess", "side_stream_joined"]),
    ],
)
def test_a_glob_is_for_a_name_or_for_a_group_with_a_name(cases, only, skip, names):
    assert [case.name for case in chosen(cases, only, skip)] == names


def test_a_glob_that_matches_nothing_is_answered_with_the_nearest_name(cases):
    with pytest.raises(InputError, match="--only 'gues' matches no case of the corpus. Did you mean 'guess'?"):
        chosen(cases, ["gues"], [])
    with pytest.raises(InputError, match="group/name"):
        chosen(cases, [], ["xyzzy"])


def test_nothing_left_is_nothing_to_run(cases):
    with pytest.raises(NothingToRun, match="Skip fewer"):
        chosen(cases, ["guess"], ["answer/*"])
