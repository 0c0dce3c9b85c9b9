"""What `forward` returned: the gates on its form, and what is done to it afterwards."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.layout import is_dense, plan
from harness.worker.outputs import fault_of, in_order, lie_in_order, take

CPU = torch.device("cpu")
NO_SLOT = range(0)


def fault(result, reference, slot=NO_SLOT, shape=None):
    """The code of the fault of `result` where the reference returned `reference`."""
    tensors = [reference] if isinstance(reference, torch.Tensor) else [
        each for each in reference if isinstance(each, torch.Tensor)
    ]
    if shape is None:
        shape = "tensor" if isinstance(reference, torch.Tensor) else [
            "tensor" if isinstance(each, torch.Tensor) else "value" for each in reference
        ]
    strides = [list(each.stride()) if is_dense(each) else None for each in tensors]
    found = fault_of(result, shape, plan(tensors, contiguous=True), strides, CPU, slot)
    return found and found["code"]


ONE = torch.zeros(3, 4)


def test_a_result_like_the_references_has_no_fault():
    assert fault(torch.ones(3, 4), ONE) is None
    assert fault((torch.ones(3), torch.ones(4)), (torch.zeros(3), torch.zeros(4))) is None
    assert fault([torch.ones(3), torch.ones(4)], (torch.zeros(3), torch.zeros(4))) is None


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (torch.ones(3, 5), "wrong_shape"),
        (torch.ones(1, 3, 4), "wrong_shape"),
        (torch.ones(12), "wrong_shape"),
        (torch.ones(3, 4, dtype=torch.float64), "wrong_dtype"),
        (torch.ones(3, 4, dtype=torch.int32), "wrong_dtype"),
        (torch.ones(3, 4).to_sparse(), "wrong_layout"),
        (torch.ones(3, 8)[:, :4], "wrong_layout"),
        (torch.ones(3, 4, device="meta"), "wrong_device"),
        ((torch.ones(3, 4), torch.ones(1)), "wrong_count"),
    ],
    ids=[
        "a column more", "a dimension more", "flattened", "float64", "int32", "sparse", "with gaps",
        "elsewhere", "a pair",
    ],
)
def test_each_fault_of_form_has_its_own_code(result, code):
    assert fault(result, ONE) == code


@pytest.mark.parametrize(
    "result", [None, 3.0, "done", {1, 2}, object(), torch.nn.Linear(1, 1)],
    ids=["None", "a number", "text", "a set", "an object", "a module"],
)
def test_what_is_no_tensor_has_the_wrong_type(result):
    assert fault(result, ONE) == "wrong_type"


def test_a_tensor_of_a_type_of_its_own_is_refused_and_a_parameter_is_not():
    class Lazy(torch.Tensor):
        pass

    assert fault(torch.ones(3, 4).as_subclass(Lazy), ONE) == "wrong_type"
    assert fault(torch.nn.Parameter(torch.ones(3, 4)), ONE) is None


def test_a_list_of_one_tensor_is_not_a_tensor():
    assert fault([torch.ones(3, 4)], ONE) == "wrong_type"


def test_a_result_in_any_order_of_dimensions_is_right_and_which_order_that_is_can_be_told():
    transposed = [list(torch.zeros(4, 3).T.stride())]
    for result in (torch.ones(4, 3).T, torch.ones(3, 4)):
        assert fault(result, torch.zeros(4, 3).T) is None
    assert lie_in_order([torch.ones(4, 3).T], transposed) and not lie_in_order([torch.ones(3, 4)], transposed)
    assert lie_in_order([torch.ones(3, 4), torch.ones(2)], [None, [1]]), "no order is asked for where there is none"


def test_what_lies_in_another_order_is_copied_to_the_references_and_nothing_else_is():
    images = torch.rand(2, 3, 4, 5)
    last, rows = images.to(memory_format=torch.channels_last), torch.rand(7)
    specs, strides = plan([images, rows], contiguous=True), [list(images.stride()), [1]]
    placed = in_order((last, rows), specs, strides)
    assert torch.equal(placed[0], images) and placed[0].stride() == images.stride()
    assert placed[1] is rows
    channels_last = [list(last.stride()), [1]]
    assert in_order((last, rows), specs, channels_last)[0] is last
    assert in_order([images, rows], specs, channels_last)[0].stride() == last.stride()


def test_a_dict_whose_keys_come_in_another_order_is_put_in_order_tensor_by_tensor():
    made = {"b": torch.rand(3, 4), "a": torch.rand(4, 3).T}
    specs = plan([made["a"], made["b"]], contiguous=True)
    placed = in_order(made, specs, [[4, 1], [4, 1]])
    assert placed["a"].stride() == (4, 1) and torch.equal(placed["a"], made["a"]) and placed["b"] is made["b"]


@pytest.mark.parametrize(
    "result",
    [None, 3.0, object(), torch.ones(3, 5).T, torch.ones(4, 3).double().T, torch.ones(4, 6).T[:3],
     torch.ones(3, 4).to_sparse(), (torch.ones(4, 3).T, torch.ones(1)), torch._efficientzerotensor((3,))],
    ids=["None", "a number", "an object", "another shape", "another dtype", "gaps", "sparse", "one too many", "no memory"],
)
def test_within_the_window_what_has_a_fault_is_left_to_the_gates(result):
    assert in_order(result, plan([ONE]), [[4, 1]]) is result


def test_a_view_of_an_input_in_another_order_is_an_alias_still():
    slot = torch.zeros(4096, dtype=torch.uint8)
    addresses = range(slot.data_ptr(), slot.data_ptr() + slot.numel())
    assert fault(slot[:48].view(torch.float32).view(4, 3).T, ONE, addresses) == "aliases_input"
    assert fault(torch._neg_view(torch.ones(4, 3).T), ONE) == "wrong_layout", "nor may it be computed as it is copied"


def test_a_dimension_of_one_element_may_have_any_stride():
    assert fault(torch.ones(4, 1).T, torch.zeros(1, 4)) is None
    assert fault(torch.ones(1, 4).as_strided((1, 4), (77, 1)), torch.zeros(1, 4)) is None


def test_where_the_references_own_output_repeats_elements_a_plain_one_is_right():
    assert fault(torch.ones(3, 4), torch.zeros(3, 1).expand(3, 4)) is None


def test_where_the_references_own_output_has_gaps_a_plain_one_is_right():
    assert fault(torch.ones(3, 4), torch.zeros(3, 8)[:, :4]) is None


def test_one_tensor_too_few_is_a_wrong_count():
    assert fault(torch.ones(3), (torch.zeros(3), torch.zeros(4))) in ("wrong_count", "wrong_type")
    assert fault((torch.ones(3),), (torch.zeros(3), torch.zeros(4))) == "wrong_count"


def test_an_output_in_the_memory_of_an_input_is_an_alias_however_it_is_viewed():
    slot = torch.zeros(4096, dtype=torch.uint8)
    addresses = range(slot.data_ptr(), slot.data_ptr() + slot.numel())
    inside = slot[512 : 512 + 48].view(torch.float32).view(3, 4)
    assert fault(inside, ONE, addresses) == "aliases_input"
    assert fault(inside.view(-1).view(3, 4), ONE, addresses) == "aliases_input"
    assert fault(inside.clone(), ONE, addresses) is None


def test_a_tensor_object_of_another_storage_at_the_same_place_is_an_alias_too():
    slot = bytearray(4096)
    view = torch.frombuffer(slot, dtype=torch.float32, count=12, offset=64).view(3, 4)
    start = torch.frombuffer(slot, dtype=torch.uint8).data_ptr()
    assert fault(view, ONE, range(start, start + 4096)) == "aliases_input"


def test_a_storage_that_begins_before_the_inputs_and_reaches_into_them_is_an_alias_too():
    memory = torch.zeros(64)
    view = memory[16:28].view(3, 4)
    assert fault(view, ONE, range(view.data_ptr(), view.data_ptr() + 48)) == "aliases_input"
    assert fault(view, ONE, range(memory.data_ptr() + 256, memory.data_ptr() + 512)) is None


OWN_WORDS = {
    "stride": lambda self=None: (4, 1), "numel": lambda self=None: 0, "is_contiguous": lambda self=None: True,
    "untyped_storage": lambda self=None: torch.zeros(12).untyped_storage(), "storage_offset": lambda self=None: 0,
}


@pytest.mark.parametrize(("result", "code"), [
    (torch.zeros(4, 3).t(), None),  # in another order, to be copied
    (torch.zeros(1, 4).expand(3, 4), "wrong_layout"),
])
def test_a_methods_of_its_own_are_not_asked_how_it_lies(result, code):
    for name, word in OWN_WORDS.items():
        setattr(result, name, word)
    specs = plan([ONE])
    assert fault(result, ONE) == code and not lie_in_order([result], [[4, 1]])
    assert (in_order(result, specs, [[4, 1]]) is result) == (code is not None)


def test_an_input_under_a_method_that_says_it_is_empty_is_an_alias():
    result = torch.zeros(3, 4)
    result.numel = lambda: 0
    begin = result.data_ptr()
    assert fault(result, ONE, range(begin, begin + 4096)) == "aliases_input"


@pytest.mark.parametrize("name", ["shape", "stride", "numel", "dtype", "device", "layout", "copy_", "detach"])
def test_what_is_put_into_the_class_of_tensors_is_not_asked(monkeypatch, name):
    result, outbox, specs = torch.arange(12.0).view(4, 3).t(), [torch.zeros(3, 4)], plan([ONE])
    lies = {
        "shape": property(lambda self: (3, 5)), "dtype": property(lambda self: torch.int8),
        "device": property(lambda self: torch.device("meta")), "layout": property(lambda self: torch.sparse_coo),
    }
    monkeypatch.setattr(torch.Tensor, name, lies.get(name, lambda self, *arguments: self.fill_(7.0)), raising=False)
    found = fault_of(result, "tensor", specs, [[4, 1]], CPU, NO_SLOT)
    take(result, outbox, None)
    monkeypatch.undo()
    assert found is None and outbox[0].tolist() == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


def test_a_mode_that_was_left_on_neither_answers_for_an_output_nor_copies_it():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    asked = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            asked.append(function)
            return function(*arguments, **(keywords or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            asked.append(function)
            return function(*arguments, **(keywords or {}))

    result, outbox, specs = torch.arange(12.0).view(4, 3).t(), [torch.zeros(3, 4)], plan([ONE])
    with Functions(), Operators():
        found = fault_of(result, "tensor", specs, [[4, 1]], CPU, NO_SLOT)
        placed = in_order(result, specs, [[4, 1]])
        take(placed, outbox, None)
    assert asked == [] and found is None and outbox[0][1].tolist() == [1, 4, 7, 10]


def test_the_words_name_what_was_returned_and_what_should_have_been():
    found = fault_of((1, 2), "tensor", plan([ONE]), [[4, 1]], CPU, NO_SLOT)
    assert "a tuple of 2" in found["detail"]
    found = fault_of(torch.ones(2, 4), "tensor", plan([ONE]), [[4, 1]], CPU, NO_SLOT)
    assert "(2, 4)" in found["detail"]
    assert "(3, 4)" in found["detail"]


def test_which_of_several_outputs_is_wrong_is_said():
    specs = plan([torch.zeros(3), torch.zeros(4)])
    found = fault_of((torch.ones(3), torch.ones(5)), ["tensor", "tensor"], specs, [[1], [1]], CPU, NO_SLOT)
    assert found["detail"].startswith("output 1 ")


def test_what_was_taken_is_in_the_outbox_and_overwritten_where_it_came_from():
    result, outbox = torch.arange(6.0), [torch.zeros(6)]
    take(result, outbox, None)
    assert outbox[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert bool(result.isnan().all())


def test_the_whole_storage_is_overwritten_also_what_was_not_returned():
    larger = torch.ones(10)
    take(larger[2:4], [torch.zeros(2)], None)
    assert bool(larger.isnan().all())


def test_two_outputs_of_one_storage_are_both_copied_before_it_is_overwritten():
    whole = torch.arange(4.0)
    outbox = [torch.zeros(2), torch.zeros(2)]
    take((whole[:2], whole[2:]), outbox, None)
    assert [each.tolist() for each in outbox] == [[0, 1], [2, 3]]


def test_strides_do_not_matter_to_the_copy():
    result, outbox = torch.arange(6.0).view(2, 3).T, [torch.zeros(3, 2)]
    expected = result.clone()
    take(result, outbox, None)
    assert torch.equal(outbox[0], expected)


def test_plain_values_among_the_outputs_come_back_in_order():
    assert take((torch.zeros(1), 3, "x", None), [torch.zeros(1)], None) == [3, "x", None]


def test_an_empty_output_is_taken_without_harm():
    assert take(torch.zeros(0, 3), [torch.zeros(0, 3)], None) == []


def test_what_is_computed_when_it_is_read_is_refused():
    complex_ones = torch.ones(3, 4, dtype=torch.complex64)
    assert fault(torch._neg_view(torch.ones(3, 4)), ONE) == "wrong_layout"
    assert fault(complex_ones.conj(), complex_ones) == "wrong_layout"
    assert fault(complex_ones.conj().resolve_conj(), complex_ones) is None
    assert fault(torch._efficientzerotensor((3, 4)), ONE) == "wrong_layout"
    lazy = fault_of(torch._neg_view(torch.ones(3, 4)), "tensor", plan([ONE], contiguous=True), [None], CPU, NO_SLOT)
    assert lazy is None, "so is the reference's own"


def test_a_storage_that_says_it_is_smaller_than_its_tensor_is_refused():
    """What is overwritten is what the storage owns up to, and the rest would still hold what it held before."""
    hidden = torch.ones(5, 4)[1:4]
    assert fault(hidden, ONE) is None
    hidden.untyped_storage().resize_(0)
    assert fault(hidden, ONE) == "wrong_layout"
    some = torch.ones(3, 4)
    some.untyped_storage().resize_(40)
    assert fault(some, ONE) == "wrong_layout"
    assert fault(torch.ones(()).expand(3, 4), ONE) == "wrong_layout", "its strides are others"
    assert fault(torch.zeros(0, 4), torch.zeros(0, 4)) is None
