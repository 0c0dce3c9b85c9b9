"""Compiling a kernel of the harness's own without a compiler."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import nvrtc

pytestmark = pytest.mark.gpu


def test_a_kernel_becomes_a_cubin_for_this_gpu():
    properties = torch.cuda.get_device_properties(0)
    source = 'extern "C" __global__ void nothing() {}'
    assert nvrtc.compile_cubin(source, properties.major, properties.minor)[:4] == b"\x7fELF"


def test_a_source_that_is_none_is_refused_with_an_error():
    with pytest.raises(nvrtc.NvrtcError, match="code"):
        nvrtc.compile_cubin("no kernel", 9, 0)
