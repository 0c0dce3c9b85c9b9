"""Problems that say nothing of their sums: honest kernels of each kind are right, and what narrows its inputs is not.

`honest` are ways to compute an operator that people write by hand: a tree in each block of threads with atomics behind
it, one thread a row, other formulas of the same thing.
"""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from harness.reference.accuracy.classes import classify
from harness.reference.error_figures import judge_outputs
from harness.reference.error_figures import note_what_cannot_be_compared, noisy_outputs
from harness.reference.inputs.families import GIVEN, SIGNS
from harness.reference.inputs.one_way_rounding import NAME, to_tf32


def figures_of(reference, way, families=None):
    """The error figures of `way`, which is given a set of inputs, on each family of inputs and once more as given."""
    judged = []
    for family in families or (*reference.families, GIVEN):
        inputs = reference.draw(family)
        returned = way(inputs.arguments())
        outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        judged.append(judge_outputs(reference, inputs, reference.truth(inputs), outputs, "fp32"))
    return judged


def is_ok(reference, way):
    return classify(figures_of(reference, way)) == "fp32"


def narrowed(reference, kind):
    """The reference with inputs and parameters rounded to TF32 or to a 16-bit type."""
    round_to = to_tf32 if kind == "tf32" else lambda each: each.to(kind).float() if each.is_floating_point() else each
    model = copy.deepcopy(reference.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(round_to(parameter))

    def way(arguments):
        with torch.no_grad():
            return model(*map(round_to, arguments))

    return way


def zeros(reference):
    return lambda arguments: [torch.zeros(spec.shape, dtype=spec.torch_dtype) for spec in reference.output_specs]


def eager(reference):
    def way(arguments):
        with torch.no_grad():
            return reference.model(*arguments)

    return way


def chain(values, dim=-1):
    """One accumulator that adds term after term."""
    return values.cumsum(dim, dtype=torch.float32).select(dim, -1)  # on a CPU a cumulative sum is that


def blocks(values):
    """A tree in each block of 256, and the blocks one after the other, as atomics come."""
    parts = F.pad(values.flatten(), (0, -values.numel() % 256)).view(-1, 256)
    while parts.shape[1] > 1:
        parts = parts[:, : parts.shape[1] // 2] + parts[:, parts.shape[1] // 2 :]
    return chain(parts.flatten())


def rows(values):
    return chain(chain(values))


def cross_entropy(logits, targets):
    largest = logits.amax(1, keepdim=True)
    sums = torch.log(chain(torch.exp(logits - largest))) + largest[:, 0]
    return chain(sums - logits.gather(1, targets[:, None])[:, 0]) / len(logits)


def triplet(anchor, positive, negative):
    near, far = (torch.sqrt(chain((anchor - each + 1e-6) ** 2)) for each in (positive, negative))
    return chain((near - far + 1).clamp(min=0)) / len(anchor)


LOSSES = {
    "mse": (
        "((x[0] - x[1]) ** 2).mean()", "torch.rand(64, 1024), torch.rand(64, 1024)",
        [lambda a, b: blocks((a - b) ** 2) / a.numel(), lambda a, b: rows((a - b) ** 2) / a.numel()],
    ),
    "huber": (
        "F.smooth_l1_loss(x[0], x[1])", "torch.rand(64, 1024) * torch.rand(()), torch.rand(64, 1024)",
        [lambda a, b: blocks(0.5 * (a - b) ** 2) / a.numel()],
    ),
    "kl": (
        "F.kl_div(torch.log(x[0]), x[1], reduction='batchmean')",
        "torch.rand(128, 512).softmax(-1), torch.rand(128, 512).softmax(-1)",
        [lambda p, t: blocks(t * (torch.log(t) - torch.log(p))) / len(p)],
    ),
    "cross entropy": (
        "F.cross_entropy(x[0], x[1])", "torch.rand(4096, 32), torch.randint(0, 32, (4096,))", [cross_entropy],
    ),
    "triplet margin": (
        "F.triplet_margin_loss(x[0], x[1], x[2])", "torch.rand(64, 512), torch.rand(64, 512), torch.rand(64, 512)",
        [triplet],
    ),
    "hinge": (
        "(1 - x[0] * x[1]).clamp(min=0).mean()", "torch.rand(8, 16384), torch.randint(0, 2, (16384,)).float() * 2 - 1",
        [lambda p, t: blocks((1 - p * t).clamp(min=0)) / p.numel(), lambda p, t: rows((1 - p * t).clamp(min=0)) / p.numel()],
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_honest_kernels_of_a_loss_are_right_and_narrower_inputs_are_not(undescribed, loss):
    result, inputs, honest = LOSSES[loss]
    made = undescribed(result, inputs)
    assert NAME in [family.name for family in made.families]
    for way in honest:
        for _ in range(3):
            assert is_ok(made, lambda arguments, way=way: way(*arguments))
    assert is_ok(made, eager(made))
    for wrong in (narrowed(made, "tf32"), narrowed(made, torch.bfloat16), narrowed(made, torch.float16), zeros(made)):
        assert not is_ok(made, wrong)


def test_such_inputs_may_be_timed_and_are_drawn_again_from_their_seed(undescribed):
    made = undescribed(*LOSSES["mse"][:2])
    assert [family.name for family in made.timed_families] == [NAME]
    inputs = made.draw(made.families[-1])
    assert torch.equal(made.draw(made.family_named(NAME), inputs.seed).region, inputs.region)


@pytest.mark.parametrize(("result", "inputs"), [
    ("torch.relu(x[0])", "torch.randn(64, 64)"), ("x[0] @ x[1]", "torch.rand(32, 64), torch.rand(64, 32)"),
    ("x[0].half() @ x[1].half()", "torch.rand(32, 64), torch.rand(64, 32)"), ("x[0].sum()", "torch.arange(64.)"),
])
def test_inputs_in_tf32_that_show_by_themselves_or_cannot_show_need_no_family(undescribed, result, inputs):
    assert undescribed(result, inputs).families == (GIVEN,)


@pytest.mark.parametrize(("result", "way"), [
    ("x[0].sum(1)", chain), ("x[0].mean(1)", lambda x: chain(x) / 8192), ("x[0].cumsum(1)", lambda x: x.cumsum(1)),
    ("(x[0] * (torch.arange(8192) % 3 > 0)).flip(1).cumsum(1)",
     lambda x: (x * (torch.arange(8192) % 3 > 0)).flip(1).cumsum(1)),
])
def test_long_sums_of_the_very_inputs_show_tf32_by_signs_and_a_single_chain_of_them_is_right(undescribed, result, way):
    made = undescribed(result, "torch.rand(48, 8192)")
    assert made.families == (GIVEN, SIGNS)
    assert is_ok(made, lambda arguments: way(*arguments))
    assert not is_ok(made, narrowed(made, "tf32"))


LSE = (
    "torch.logsumexp(self.layer(x[0]), dim=1)", "torch.rand(64, 512)", "self.layer = torch.nn.Linear(512, 512)",
)


def test_a_product_below_a_logsumexp_is_held_to_what_is_left_of_its_sums(undescribed):
    made = undescribed(*LSE)
    weight, bias = made.model.layer.weight.detach(), made.model.layer.bias.detach()

    def sequential(arguments):
        (x,) = arguments
        total = torch.zeros(len(x), len(weight))
        for k in range(x.shape[1]):
            total = total + x[:, k : k + 1] * weight.t()[k : k + 1]
        return torch.log(chain(torch.exp(total + bias)))

    assert is_ok(made, sequential) and is_ok(made, eager(made))
    for kind in ("tf32", torch.bfloat16):
        assert not is_ok(made, narrowed(made, kind))
    (given,) = figures_of(made, narrowed(made, torch.bfloat16), [GIVEN])
    assert given.bounds.max_u < 2 * 512**0.5  # which the longest sum alone would have allowed


def test_a_sum_of_a_million_allows_no_more_than_one_chain(undescribed):
    made = undescribed("x[0] - x[0].mean()", "torch.rand(1024, 1024)")
    assert made.longest_sum == 1 << 20
    (first, *_) = figures_of(made, lambda arguments: arguments[0] - chain(arguments[0].flatten()[: 1 << 14]) / (1 << 14))
    assert first.bounds.max_u <= 260
    assert not is_ok(made, narrowed(made, "tf32"))
    assert is_ok(made, lambda arguments: arguments[0] - blocks(arguments[0]) / (1 << 20))


def test_eager_that_sums_badly_lets_no_tf32_through(undescribed):
    """On a CPU the norm of millions is off by hundreds of u, and ten times as much would let TF32 pass."""
    made = undescribed("x[0] / torch.norm(x[0])", "torch.rand(2 << 20)")
    assert is_ok(made, eager(made))
    assert is_ok(made, lambda arguments: arguments[0] * torch.rsqrt(blocks(arguments[0] ** 2)))
    assert not is_ok(made, narrowed(made, "tf32"))


def test_rows_that_are_nearly_zero_let_no_tf32_through(undescribed):
    """Their own scale is so small that eager itself is far off there, and TF32 as many times further."""
    made = undescribed("torch.relu(x[0] @ x[1] - 5.5)", "torch.rand(2048, 16), torch.rand(16, 48)")
    (first, *_) = figures_of(made, eager(made))
    assert first.eager_max_u > 100
    assert is_ok(made, lambda arguments: torch.relu(chain(arguments[0].unsqueeze(1) * arguments[1].t()) - 5.5))
    assert not is_ok(made, narrowed(made, "tf32")) and not is_ok(made, zeros(made))


def test_many_errors_below_the_largest_allowed_are_too_many(undescribed):
    made = undescribed("torch.sigmoid(x[0])", "torch.randn(64, 64)")
    (first, *_) = figures_of(made, lambda arguments: torch.sigmoid(arguments[0]) + 12 * 2.0**-24)
    assert first.max_u < first.bounds.max_u and first.rms_u > first.bounds.rms_u
    assert is_ok(made, lambda arguments: 1 / (1 + torch.exp(-arguments[0])))


def test_the_mean_of_what_has_a_mean_of_zero_is_rounding_noise(undescribed):
    made = undescribed("F.group_norm(x[0], 2).mean(dim=(1, 2))", "torch.rand(16, 8, 64)")
    assert noisy_outputs(made) == (0,)
    assert noisy_outputs(undescribed("F.group_norm(x[0], 2)", "torch.rand(16, 8, 64)")) == ()
    assert noisy_outputs(undescribed("F.group_norm(x[0], 2).bfloat16()", "torch.rand(16, 8, 64)")) == ()
    assert noisy_outputs(undescribed("torch.relu(x[0] - 2)", "torch.rand(16, 64)")) == ()  # zero, and exactly so


def test_in_rounding_noise_nobody_is_condemned_for_noise_of_his_own(undescribed):
    made = undescribed("F.group_norm(x[0], 2).mean(dim=(1, 2))", "torch.rand(48, 8, 64)")
    assert is_ok(made, lambda arguments: 3 * F.group_norm(arguments[0], 2).mean(dim=(1, 2)))
    assert not is_ok(made, lambda arguments: F.group_norm(arguments[0], 2).mean(dim=(1, 2)) + 1e-3)


def test_a_row_that_is_nearly_zero_is_judged_by_the_others(undescribed):
    """What is zero in float64 may be a little more than that in fp32, and the other way round."""
    made = undescribed("torch.relu(x[0] - 1.0)", "torch.cat([torch.rand(63, 64) + 1, torch.ones(1, 64)])")
    assert is_ok(made, lambda arguments: torch.relu(arguments[0] - 1.0 + 2.0**-26))
    assert not is_ok(made, lambda arguments: torch.relu(arguments[0] - 1.0 + 2.0**-14))


def test_each_output_has_bounds_of_its_own(undescribed):
    """A sum beside them leaves no room to others."""
    made = undescribed("(x[0].sum(1), torch.sigmoid(x[0]))", "torch.rand(64, 4096)")
    inputs = made.draw()
    truth, outputs = made.truth(inputs), made.eager(inputs)
    outputs[1] = outputs[1] * (1 + 40 * 2.0**-24)
    figures = judge_outputs(made, inputs, truth, outputs, "fp32")
    assert figures.max_u > figures.bounds.max_u
    assert figures.evidence.mistakes.output == 1
    outputs = [chain(inputs.tensors()[0]), made.eager(inputs)[1]]
    assert judge_outputs(made, inputs, truth, outputs, "fp32").evidence is None


CASTS = {
    "bf16 norm": ("F.layer_norm(x[0].bfloat16(), (256,)).float()", "torch.randn(64, 256)"),
    "half product": ("(x[0].half() @ x[1].half()).float()", "torch.rand(48, 64), torch.rand(64, 48)"),
    "attention in half": (
        "F.scaled_dot_product_attention(x[0].half(), x[1].half(), x[2].half()).to(x[0].dtype)",
        "torch.randn(2, 32, 16), torch.randn(2, 32, 16), torch.randn(2, 32, 16)",
    ),
    "softmax in bf16": ("torch.softmax(x[0].to(torch.bfloat16), -1).to(torch.float32)", "torch.randn(64, 256)"),
}
IN_FP32 = {
    "bf16 norm": lambda x: F.layer_norm(x, (256,)), "half product": torch.matmul,
    "attention in half": F.scaled_dot_product_attention, "softmax in bf16": lambda x: torch.softmax(x, -1),
}


@pytest.mark.parametrize("kind", CASTS)
def test_a_model_that_casts_inside_itself_condemns_neither_its_precision_nor_a_better_one(undescribed, kind):
    made = undescribed(*CASTS[kind])
    assert made.truth_name == "float64"
    assert is_ok(made, eager(made))
    assert is_ok(made, lambda arguments: IN_FP32[kind](*arguments))
    assert not is_ok(made, narrowed(made, torch.float8_e4m3fn))
    assert not is_ok(made, zeros(made))


QUANTISED = ("((y := x[0] / (x[0].abs().amax(1, keepdim=True) / 448)).to(torch.float8_e4m3fn), y.to(torch.float8_e5m2).float())",
             "torch.randn(64, 256)")


# So far from zero are the sums of such rows with what is positive that no rounding changes a sign.
ONE_SIGN_A_ROW = "torch.rand(4, 512) * (2 * torch.randint(2, (4, 1)) - 1)"


def notes_of(made):
    note_what_cannot_be_compared(made)
    return [note.value for note in made.notes]


def test_one_output_that_is_rounding_noise_is_told_of_the_whole(undescribed):
    """Whoever leaves it out would gain by that."""
    assert notes_of(undescribed("(x[0].sum(1), F.layer_norm(x[0], (512,)).mean(1))", "torch.randn(64, 512)")) == ["rounding_noise"]
    assert notes_of(undescribed("(x[0].sum(1), F.layer_norm(x[0], (512,)))", "torch.randn(64, 512)")) == []


@pytest.mark.parametrize(("returns", "inputs", "notes"), [
    ("(x[0] @ x[1]).argmax(1)", f"{ONE_SIGN_A_ROW}, torch.rand(512, 2) + torch.tensor([0, 1])", ["coarse_choice"]),
    ("(x[0] @ x[1] > 0)", f"{ONE_SIGN_A_ROW}, torch.rand(512, 4)", ["coarse_choice"]),
    ("(x[0] @ x[1]).argmax(1)", "torch.randn(4096, 512), torch.randn(512, 128)", []),
    ("((x[0] @ x[1]).argmax(1), x[0] @ x[1])", "torch.randn(1, 512), torch.randn(512, 128)", []),
    ("x[0].argmax(1)", "torch.randn(1, 512)", []),  # nothing is summed
    ("x[0].cumsum(1)", "torch.randint(9, (4, 512))", []),  # nothing is lost
])
def test_a_choice_by_a_sum_that_tf32_does_not_change_is_told(undescribed, returns, inputs, notes):
    assert notes_of(undescribed(returns, inputs)) == notes


def test_a_choice_for_whose_draws_there_is_no_room_is_left_to_its_rows(undescribed, monkeypatch):
    made = undescribed("(x[0] @ x[1] > 0)", f"{ONE_SIGN_A_ROW}, torch.rand(512, 4)")

    def has_no_room(inputs):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(made.measured_bounds, "_eager", has_no_room)
    assert notes_of(made) == []


def test_outputs_of_eight_bits_are_judged_as_others_are(undescribed):
    made = undescribed(*QUANTISED)

    def by_the_inverse(arguments):
        scaled = arguments[0] * (1 / (arguments[0].abs().amax(1, keepdim=True) / 448))
        return scaled.to(torch.float8_e4m3fn), scaled.to(torch.float8_e5m2).float()

    assert made.notes == [] and noisy_outputs(made) == ()
    assert is_ok(made, eager(made)) and is_ok(made, by_the_inverse)
    assert not is_ok(made, zeros(made))
    assert not is_ok(made, lambda arguments: [eager(made)(arguments)[0], torch.zeros(64, 256)])
    assert not is_ok(made, lambda arguments: [
        (eager(made)(arguments)[0].float() * 1.3).clamp(-448, 448).to(torch.float8_e4m3fn), eager(made)(arguments)[1]
    ])


def test_a_product_under_autocast_is_neither_noise_nor_held_to_fp32(undescribed):
    made = undescribed("self.layer(x[0])", "torch.rand(64, 256)", """self.layer = torch.nn.Linear(256, 64)

    def __call__(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layer(x).float()
""")
    assert made.truth_name == "float64" and noisy_outputs(made) == ()
    assert is_ok(made, eager(made)) and is_ok(made, lambda arguments: made.model.layer(*arguments).detach())
    assert not is_ok(made, narrowed(made, torch.float8_e4m3fn)) and not is_ok(made, zeros(made))


def test_a_cast_that_cannot_be_left_out_allows_for_what_it_rounds(undescribed):
    """Its bytes are looked at, which are no float64's; then eager is the truth, and a kernel that rounds otherwise right."""
    made = undescribed("(x[0] @ x[1]).half().view(torch.int16).view(torch.half).float()",
                       "torch.rand(48, 256), torch.rand(256, 48)")
    assert made.truth_name == "eager"
    assert is_ok(made, lambda arguments: chain(arguments[0].unsqueeze(1) * arguments[1].t()).half().float())
    assert is_ok(made, lambda arguments: arguments[0] @ arguments[1])
    assert not is_ok(made, narrowed(made, torch.float8_e4m3fn))


def test_a_constant_that_the_model_makes_is_no_cast(undescribed):
    made = undescribed("torch.min(x[0] @ x[1], torch.tensor(8.0)) * torch.ones(48)", "torch.rand(48, 64), torch.rand(64, 48)")
    assert made.truth_name == "float64"
    assert is_ok(made, lambda arguments: chain(arguments[0].unsqueeze(1) * arguments[1].t()).clamp(max=8))
