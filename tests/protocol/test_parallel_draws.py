"""Large draws by several threads: the numbers, and what the generator draws next, are PyTorch's own to the last bit."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import parallel_draws
from harness.worker import model

PIECE = 1 << 15
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DRAWS = (("uniform_", (-0.25, 0.5)), ("normal_", (1.0, 3.0)))


@pytest.fixture
def pieces(monkeypatch):
    """How many pieces each draw that was shared out had; draws of two pieces of 32768 elements already are."""
    counts = []

    def draw(tensor, ordinary):
        places = []
        is_done = shared_out(tensor, lambda piece, source: (places.append(piece.data_ptr()), ordinary(piece, source)))
        if is_done:
            counts.append(len(places))
        return is_done

    shared_out = parallel_draws._draw
    monkeypatch.setattr(parallel_draws, "_draw", draw)
    monkeypatch.setattr(parallel_draws, "_LEAST", 2 * PIECE)
    monkeypatch.setattr(parallel_draws, "_LEAST_PIECE", PIECE)
    monkeypatch.setattr(parallel_draws, "_cores", lambda: 4)
    return counts


@pytest.fixture(autouse=True)
def _own_numbers():
    """What is seeded here is no other test's."""
    with torch.random.fork_rng(devices=[]):
        yield


def drawn(make, seed=7, before=0, *, in_pieces):
    """What `make()` draws, and then forty numbers and the state of the generator, after `before` others of the `seed`."""
    torch.manual_seed(seed)
    torch.rand(before)
    if in_pieces:
        with parallel_draws.entered():
            made = make()
    else:
        made = make()
    return made, torch.randn(40), torch.get_rng_state()


def assert_same(make, **how):
    for own, ordinary in zip(drawn(make, **how, in_pieces=True), drawn(make, **how, in_pieces=False)):
        assert torch.equal(own, ordinary)


@pytest.mark.parametrize("before", [0, 1, 623, 624, 1001])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "bounds"), DRAWS)
def test_the_numbers_are_pytorchs_own_wherever_the_generator_is(pieces, name, bounds, dtype, before):
    assert_same(lambda: getattr(torch.empty(5 * PIECE + 7, dtype=dtype), name)(*bounds), before=before)
    assert pieces == [4]


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 16])
def test_the_numbers_are_the_same_on_any_number_of_cores(pieces, monkeypatch, cores):
    monkeypatch.setattr(parallel_draws, "_cores", lambda: cores)
    assert_same(lambda: torch.empty(8, PIECE).normal_())
    assert pieces == ([] if cores == 1 else [min(cores, 7)])


def test_another_seed_and_a_second_draw_have_other_numbers(pieces):
    def make():
        return torch.stack([torch.empty(2 * PIECE).uniform_() for _ in range(2)])

    first, second = drawn(make, seed=1, in_pieces=True)[0]
    assert not torch.equal(first, second)
    assert not torch.equal(first, drawn(make, seed=2, in_pieces=True)[0][0])
    assert pieces == [2] * 4


def test_range_mean_and_deviation_are_those_that_were_asked_for(pieces):
    uniform = drawn(lambda: torch.empty(16 * PIECE).uniform_(2.0, 4.0), in_pieces=True)[0]
    assert 2.0 <= float(uniform.min()) < 2.001 and 3.999 < float(uniform.max()) < 4.0
    assert abs(float(uniform.mean()) - 3.0) < 0.01
    normal = drawn(lambda: torch.empty(16 * PIECE).normal_(5.0, 0.5), in_pieces=True)[0]
    assert abs(float(normal.mean()) - 5.0) < 0.01 and abs(float(normal.std()) - 0.5) < 0.01
    assert len(pieces) == 2


@pytest.mark.parametrize("make", [
    lambda: torch.nn.Linear(512, 256).weight.detach(),
    lambda: torch.nn.Conv2d(64, 256, 3).weight.detach(),
    lambda: torch.nn.Embedding(1024, 128).weight.detach(),
    lambda: torch.nn.init.trunc_normal_(torch.empty(512, 256), std=0.02),
    lambda: torch.nn.init.xavier_normal_(torch.empty(512, 256)),
    lambda: torch.nn.Parameter(torch.empty(512, 256)).data.normal_(std=0.02),
    lambda: torch.empty(2 * PIECE).uniform_(0.0, to=2.0, generator=None),
], ids=["Linear", "Conv2d", "Embedding", "trunc_normal_", "xavier_normal_", "data", "by name"])
def test_what_layers_and_their_initialisation_draw_is_shared_out(pieces, make):
    assert_same(make)
    assert pieces


def test_a_small_tensor_another_layout_and_a_generator_of_its_own_go_the_usual_way(pieces):
    assert_same(lambda: torch.empty(2 * PIECE - 1).uniform_())
    assert_same(lambda: torch.empty(512, 512).T[:300].normal_())
    assert_same(lambda: torch.empty(4 * PIECE).uniform_(generator=torch.Generator().manual_seed(1)))
    assert_same(lambda: torch.empty(4 * PIECE, dtype=torch.float8_e4m3fn).view(torch.uint8).random_(0, 9))
    with parallel_draws.entered():
        assert torch.empty(4 * PIECE, device="meta").uniform_().is_meta
    assert not pieces


def test_a_tensor_of_a_class_of_its_own_and_a_mode_see_the_call_as_ever(pieces):
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    uniform, normal = torch.Tensor.uniform_, torch.Tensor.normal_
    own, plain = torch.empty(4 * PIECE).as_subclass(Own), torch.empty(4 * PIECE)
    with parallel_draws.entered():
        own.uniform_()
        with Mode():
            plain.normal_()
        assert torch.Tensor.uniform_ is not uniform and torch.Tensor.normal_ is not normal
    assert uniform in seen and normal in seen
    assert not pieces


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_what_is_traced_scripted_or_compiled_meanwhile_is_as_ever(pieces):
    def noisy(tensor: torch.Tensor) -> torch.Tensor:
        return tensor + torch.empty_like(tensor).normal_()

    ones = torch.ones(4 * PIECE)
    with parallel_draws.entered():
        traced = torch.jit.trace(noisy, ones, check_trace=False)
        scripted = torch.jit.script(noisy)
        graph = torch.fx.symbolic_trace(noisy).code
    assert not pieces
    assert "aten::normal_" in str(traced.graph) and "aten::normal_" in str(scripted.graph) and ".normal_()" in graph
    assert not torch.equal(traced(ones), traced(ones))


def test_what_pytorch_refuses_it_refuses_in_its_own_words(pieces):
    with parallel_draws.entered():
        with pytest.raises(RuntimeError, match="leaf Variable"):
            torch.empty(4 * PIECE, requires_grad=True).uniform_()
        with pytest.raises(RuntimeError, match="std"):
            torch.empty(4 * PIECE).normal_(0.0, -1.0)
        with pytest.raises(TypeError):
            torch.empty(4 * PIECE).uniform_(sideways=1)
    assert not pieces


def test_a_piece_that_does_not_end_where_the_next_began_has_all_drawn_again(pieces, monkeypatch):
    right = parallel_draws.state_after
    monkeypatch.setattr(parallel_draws, "state_after", lambda state, jump: right(state, jump) ^ 1)
    assert_same(lambda: torch.empty(4 * PIECE).normal_())
    assert not pieces


@pytest.mark.parametrize("name", ["ThreadPoolExecutor", "state_after", "jump_of", "_with_its_place", "_is_large_and_plain"])
def test_where_a_part_of_it_fails_pytorch_draws(pieces, monkeypatch, name):
    def fails(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parallel_draws, name, fails)
    assert_same(lambda: torch.empty(4 * PIECE).uniform_())
    assert not pieces


def test_it_ends_with_the_construction_even_where_that_raises():
    with pytest.raises(ValueError), parallel_draws.entered():
        assert "uniform_" in torch.Tensor.__dict__
        raise ValueError
    assert not {"uniform_", "normal_"} & torch.Tensor.__dict__.keys()


def test_what_a_constructor_puts_in_its_place_stays(request):
    def own(self, *_, **__):
        return self

    request.addfinalizer(lambda: delattr(torch.Tensor, "uniform_"))
    with parallel_draws.entered():
        torch.Tensor.uniform_ = own
        with parallel_draws.entered():
            assert torch.Tensor.uniform_ is own
    assert torch.Tensor.uniform_ is own


def test_a_worker_constructs_with_it_and_a_later_draw_is_pytorchs(pieces):
    class ModelNew(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = torch.nn.Linear(width, width)

    made = model.construct(type("Module", (), {"ModelNew": ModelNew}), [512], 11, torch.device("cpu"))
    assert pieces and "uniform_" not in torch.Tensor.__dict__
    torch.manual_seed(11)
    assert torch.equal(made.linear.weight, ModelNew(512).linear.weight)
