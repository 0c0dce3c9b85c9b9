"""Where tensors lie in a region, and that what is written there is read there."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.layout import (
    ALIGNMENT_BYTES, REGION_BYTES, TensorSpec, dtype_name, fill, overlaps, plan, region_bytes, without_strides,
)

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn,
]


def region_of(specs) -> torch.Tensor:
    return torch.zeros(region_bytes(specs), dtype=torch.uint8)


@st.composite
def drawn_tensors(draw):
    tensors = []
    for _ in range(draw(st.integers(0, 4))):
        shape = draw(st.lists(st.integers(0, 5), max_size=4))
        tensor = torch.randint(0, 2, shape).to(draw(st.sampled_from(DTYPES)))
        order = draw(st.permutations(range(len(shape))))
        tensors.append(tensor.permute(order))
    return tensors


@given(drawn_tensors())
def test_tensors_come_out_of_the_region_as_they_went_in(tensors):
    specs = plan(tensors)
    region = region_of(specs)
    for spec, tensor in zip(specs, tensors):
        spec.view(region).copy_(tensor)
    for spec, tensor in zip(specs, tensors):
        view = spec.view(region)
        assert view.dtype == tensor.dtype
        assert view.shape == tensor.shape
        assert torch.equal(view.view(torch.uint8) if view.dtype.itemsize == 1 else view,
                           tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor)


@given(drawn_tensors())
def test_tensors_lie_apart_and_aligned_inside_the_region(tensors):
    specs = plan(tensors)
    assert all(spec.offset % ALIGNMENT_BYTES == 0 for spec in specs)
    ends = [spec.offset + spec.size_bytes for spec in specs]
    assert all(end <= after.offset for end, after in zip(ends, specs[1:]))
    assert all(end <= region_bytes(specs) for end in ends)


@given(drawn_tensors())
def test_a_layout_crosses_the_wire_as_json(tensors):
    specs = plan(tensors)
    assert tuple(TensorSpec.from_json(json.loads(json.dumps(spec.to_json()))) for spec in specs) == specs


def test_a_transposed_input_keeps_its_strides():
    (spec,) = plan([torch.zeros(3, 5).T])
    assert spec.shape == (5, 3)
    assert spec.stride == (1, 5)
    assert spec.size_bytes == 60


def test_a_channels_last_input_keeps_its_strides():
    image = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    (spec,) = plan([image])
    assert spec.view(region_of([spec])).is_contiguous(memory_format=torch.channels_last)


def test_an_output_is_laid_out_row_by_row_whatever_its_strides():
    (spec,) = plan([torch.zeros(3, 5).T], contiguous=True)
    assert spec.stride == (3, 1)


VIEWS = {
    "expanded": torch.rand(3, 1).expand(3, 4), "expanded in front": torch.rand(4).expand(2, 3, 4),
    "one for all": torch.rand(()).expand(3, 4), "with a step": torch.rand(8)[::2],
    "part of a larger one": torch.rand(4, 6)[:, :3], "transposed part": torch.rand(4, 6)[:, :3].T,
    "expanded part": torch.rand(4, 6)[:, 1:3].unsqueeze(1).expand(4, 5, 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_with_gaps_or_an_expanded_one_keeps_its_strides_and_its_values(name):
    tensor = VIEWS[name]
    (spec,) = plan([tensor])
    assert spec.stride == tensor.stride() and not overlaps(tensor)
    view = spec.view(region_of([spec]))
    fill(view, tensor)
    assert torch.equal(view, tensor)
    assert spec.has_gaps == (name in ("with a step", "part of a larger one", "transposed part", "expanded part"))


@pytest.mark.parametrize(
    "tensor", [torch.rand(6).as_strided((3, 3), (1, 1)), torch.rand(9).unfold(0, 4, 2)], ids=["as_strided", "windows"]
)
def test_elements_that_overlap_otherwise_are_laid_out_one_by_one(tensor):
    (spec,) = plan([tensor])
    assert overlaps(tensor) and spec.view(region_of([spec])).is_contiguous()
    assert spec.size_bytes == tensor.numel() * 4 and not spec.has_gaps


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda: torch.eye(2).to_sparse(), "sparse_coo"), (lambda: torch.eye(2).to_sparse_csr(), "sparse_csr"),
     (lambda: torch.quantize_per_tensor(torch.eye(2), 0.1, 0, torch.qint8), "quantized"),
     (lambda: torch.eye(2, device="meta"), "meta"),
     (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"), (lambda: torch.eye(2), None)],
    ids=["coo", "csr", "quantized", "meta", "nested", "plain"],
)
def test_what_has_no_strides_is_told_by_its_kind(make, kind):
    assert without_strides(make()) == kind


def test_an_empty_tensor_takes_no_bytes_and_keeps_its_shape():
    (spec,) = plan([torch.zeros(0, 7)])
    assert spec.extent == 0
    assert spec.view(torch.zeros(0, dtype=torch.uint8)).shape == (0, 7)


def test_a_number_as_tensor_takes_one_element():
    (spec,) = plan([torch.tensor(2.5)])
    region = region_of([spec])
    spec.view(region).copy_(torch.tensor(2.5))
    assert spec.view(region).item() == 2.5


def test_views_are_fresh_objects_over_the_same_bytes():
    (spec,) = plan([torch.zeros(4)])
    region = region_of([spec])
    first, second = spec.view(region), spec.view(region)
    first.fill_(3)
    assert first is not second
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("elements", "regions"), [(1, 1), (REGION_BYTES // 4, 1), (REGION_BYTES // 4 + 1, 2), (5 * REGION_BYTES // 4, 5)]
)
def test_a_region_is_a_whole_number_of_two_mebibytes(elements, regions):
    assert region_bytes(plan([torch.empty(elements)])) == regions * REGION_BYTES == regions * 2 * 1024 * 1024


def test_a_region_for_nothing_is_still_a_region():
    assert region_bytes(()) == REGION_BYTES


def test_types_are_named_as_torch_names_them():
    assert [dtype_name(each) for each in (torch.float32, torch.bool)] == ["float32", "bool"]
