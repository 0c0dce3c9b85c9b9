"""What --sizes takes, and every way of getting it wrong."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError
from harness.model.problem import read_sizes

TIMED = {"M": 2048, "K": 8192, "N": 4096}


def test_each_text_is_one_set_of_sizes_and_what_it_leaves_out_stays():
    assert read_sizes(["M=64", "N=8,M=16"], TIMED) == [
        {"M": 64, "K": 8192, "N": 4096}, {"M": 16, "K": 8192, "N": 8},
    ]
    assert list(read_sizes(["N=8 M=16"], TIMED)[0]) == ["M", "K", "N"]
    assert read_sizes([], TIMED) == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["4096"], r"--sizes 4096: '4096' is no NAME=NUMBER.*As in --sizes M=2048,K=8192,N=4096"),
        (["M=0"], "a whole number of at least 1"), (["M=-1"], "a whole number of at least 1"),
        (["M=1.5"], "'M=1.5' is no NAME=NUMBER"), (["M="], "no NAME=NUMBER"), ([""], "no NAME=NUMBER"),
        (["m=64"], "'m' is no size of this problem. Did you mean 'M'?"), (["Q=64"], "Its sizes are M, K and N"),
        (["M=1,M=2"], "gives M twice"), (["M=64", "M=64,K=8192"], "--sizes M=64 stands there twice"),
    ],
)
def test_a_mistake_is_one_sentence_with_what_to_type(texts, said):
    with pytest.raises(InputError, match=said):
        read_sizes(texts, TIMED)
