"""What a builder's answer becomes, where more than one reason would fit."""

from __future__ import annotations

import pytest

from harness.build.outcome import Ending, judge
from harness.build.toolchain import find_toolchain
from harness.model.candidate import read_candidate
from harness.model.verdict import ReasonCode, Status

SOURCE = '''
CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
torch::Tensor run(torch::Tensor a) { return a.sizee(0); }
"""
class ModelNew: pass
'''
ABSENT = "CUDAContextLight.h:7:10: fatal error: cusparse.h: No such file or directory\n"


@pytest.fixture
def failed(tmp_path):
    """`failed(stock, slim)`: the verdict where the compilers said so with PyTorch's headers, and with the stand-in.

    `failed.error` is what nvcc says of the candidate's fourth line.
    """
    path, fed = tmp_path / "mine.py", tmp_path / "compiled/0/build/key/cuda.cu"
    path.write_text(SOURCE, encoding="utf-8")
    fed.parent.mkdir(parents=True)
    fed.write_text(SOURCE.split('"""')[1], encoding="utf-8")

    def verdict(stock, slim):
        failure = {"kind": "compile_error", "message": "nvcc refused it", "log": stock, "slim_log": slim}
        answer = {"extensions": [], "log": stock, "failure": failure, "warnings": [], "files": []}
        return judge(Ending(answer), read_candidate(path), find_toolchain(None), tmp_path, 1.0, 60.0)[0].verdict

    verdict.error = f'{fed}(3): error: class "at::Tensor" has no member "sizee"\n'
    return verdict


def test_a_header_that_the_toolkit_lacks_does_not_hide_an_error_of_the_candidates_own(failed):
    found = failed(ABSENT, failed.error)
    assert (found.status, found.reason_code) == (Status.SKIPPED, ReasonCode.NO_NVCC)
    first, *others = found.reason.splitlines()
    assert first.endswith("lacks; bring it with: pip install nvidia-cusparse")
    assert others[0] == 'without that header: mine.py:4: class "at::Tensor" has no member "sizee"'


def test_a_header_that_is_missing_either_way_is_all_that_is_said(failed):
    assert "\n" not in failed(ABSENT, "").reason


def test_a_header_that_is_missing_with_the_stand_in_too_is_named_once(failed):
    assert "\n" not in failed(ABSENT, ABSENT.replace("CUDAContextLight.h:7", "cuda.cu:1")).reason


def test_with_all_headers_there_the_error_with_pytorchs_own_is_the_one_that_counts(failed):
    found = failed(failed.error, "something else")
    assert found.status is Status.BUILD_FAILED and found.reason.startswith("mine.py:4: class")
