"""Eager in a candidate's process as it is in the judge's: with TF32 off, whatever the candidate has turned on.

PyTorch keeps that twice (once before 2.9), in flags and in precisions by backend and operator, and refuses to read the
flags where they have come to contradict the others. What was there is put back as it was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_OFF = "ieee"
_get = getattr(torch._C, "_get_fp32_precision_getter", None)
_set = getattr(torch._C, "_set_fp32_precision_setter", None)
# What is a matrix product, and what is cuDNN's; and oneDNN's products, which one of the flags sets as well.
_OPERATORS = (("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn")) if _get and _set else ()
_KEPT = (*_OPERATORS, ("mkldnn", "matmul")) if _OPERATORS else ()
_get_precision, _set_precision = torch._C._get_float32_matmul_precision, torch._C._set_float32_matmul_precision
_get_cudnn, _set_cudnn = torch._C._get_cudnn_allow_tf32, torch._C._set_cudnn_allow_tf32
_set_cublas = torch._C._set_cublas_allow_tf32


@contextmanager
def strictly() -> Iterator[None]:
    """With TF32 off for cuBLAS and cuDNN; nothing is touched where it is."""
    before = {each: _get(*each) for each in _KEPT}
    precision, cudnn = _read(_get_precision), _read(_get_cudnn)
    if not any(before[each] == "tf32" for each in _OPERATORS) and precision == "highest" and cudnn is False:
        yield
        return
    _set_cublas(False)
    _set_cudnn(False)
    for each in _OPERATORS:
        _set(*each, _OFF)
    try:
        yield
    finally:
        if precision is not None:
            _set_precision(precision)
        if cudnn is not None:
            _set_cudnn(cudnn)
        for each, value in before.items():
            _set(*each, value)


def _read(flag: Any) -> Any:
    """What the flag is; None where the other way to say it has been used."""
    try:
        return flag()
    except RuntimeError:
        return None
