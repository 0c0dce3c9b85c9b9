"""Forms of inputs, outputs and references, through the real command line on a CPU: each judged with an honest candidate and
a wrong one, or refused in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent

import pytest

from harness.results.reader import read_records

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]

YAML = "title: {name}\nreference: {name}.py\ndtype: float32\nbaselines: [eager]\n"
RIGHT = ("ok", "unsure")  # a busy CPU leaves some rows without a time that can be believed


@dataclass
class Form:
    """A reference and its candidates, each with the statuses that its row may have; `told` is what a line says that is
    printed once, `fault` what is said where nothing can be judged.
    """

    reference: str
    candidates: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    told: str = ""
    note: str = ""
    fault: str = ""


def module(forward: str, get_inputs: str, *, before: str = "", init: str = "", get_init_inputs: str = "[]") -> str:
    """A reference; `forward` begins with its arguments."""
    return "\n".join([
        "import torch", "import torch.nn.functional as F", dedent(before), "class Model(torch.nn.Module):",
        *(f"    {line}" for line in dedent(init).splitlines()), *_method("forward", forward), "",
        f"def get_inputs():\n    {get_inputs}", f"def get_init_inputs():\n    return {get_init_inputs}", "",
    ])


def candidate(forward: str, *, before: str = "", init: str = "") -> str:
    return "\n".join([
        "import torch", "import torch.nn.functional as F", dedent(before), "class ModelNew(torch.nn.Module):",
        *(f"    {line}" for line in dedent(init).splitlines()), *_method("forward", forward), "",
    ])


def _method(name: str, text: str) -> list[str]:
    arguments, *body = [line for line in dedent(text).splitlines() if line.strip()]
    return [f"    def {name}(self, {arguments.strip()}):", *(f"        {line}" for line in body)]


KEEPS = """
x
if not hasattr(self, "kept"):
    self.kept = {result}
return self.kept.clone()
"""
SCALED = "def __init__(self, scale, *, shift=0.0):\n    super().__init__()\n    self.scale, self.shift = scale, shift\n"
NORM = "def __init__(self):\n    super().__init__()\n    self.norm = torch.nn.BatchNorm1d(64)\n"

JUDGED = {
    "in_another_order": Form(
        module("x, w\nreturn x * w + 1", "return [torch.rand(8, 16, 32, 64)[..., :48], torch.rand(16, 1, 1).expand(16, 32, 48)]"),
        {
            "channels_last": (candidate("x, w\nreturn (x * w + 1).to(memory_format=torch.channels_last)"), RIGHT),
            "as_the_reference": (candidate(
                "x, w\nassert x.stride()[2] == 64 and w.stride() == (1, 0, 0)\nreturn x * w + 1"), RIGHT),
            "wrong_in_another_order": (candidate(
                "x, w\nreturn (x * w).to(memory_format=torch.channels_last)"), ("incorrect",)),
            "reads_on_in_the_gaps": (candidate(
                "x, w\nreturn torch.as_strided(x, x.shape, (24576, 1536, 48, 1)) * w + 1"), ("incorrect",)),
            "negated_when_it_is_read": (candidate(
                "x, w\nreturn torch._neg_view((-1 - x * w).to(memory_format=torch.channels_last))"), ("incorrect",)),
            "another_order_later": (candidate("""
                x, w
                self.calls = getattr(self, "calls", 0) + 1
                made = x * w + 1
                return made if self.calls < 6 else made.to(memory_format=torch.channels_last)
            """), ("incorrect",)),
        },
    ),
    "by_name": Form(
        module(
            'x, pair, *, mask\ntotal = x * self.scale + pair[0] - pair[1] + self.shift\n'
            'return {"sum": total, "masked": [total * mask["m"], total.sum(1)]}',
            'return [[torch.rand(256, 64), [torch.rand(256, 64), torch.rand(256, 64)]], {"mask": {"m": torch.rand(256, 64)}}]',
            init=SCALED, get_init_inputs='[[3.0], {"shift": 0.5}]',
        ),
        {
            "other_order_of_keys": (candidate(
                'x, pair, *, mask\ntotal = x * self.scale + (pair[0] - pair[1]) + self.shift\n'
                'return {"masked": [total * mask["m"], total.sum(1)], "sum": total}', init=SCALED), RIGHT),
            "keys_swapped": (candidate(
                'x, pair, *, mask\ntotal = x * self.scale + (pair[0] - pair[1]) + self.shift\n'
                'return {"masked": [total, total.sum(1)], "sum": total * mask["m"]}', init=SCALED), ("incorrect",)),
        },
    ),
    "made_once_at_module_level": Form(
        module("x\nreturn x * 2", "torch.manual_seed(0)\n    return [KEPT]", before="torch.manual_seed(7)\nKEPT = torch.rand(256, 64)\n"),
        {
            "computes": (candidate("x\nreturn x + x"), RIGHT),
            "computes_once": (candidate(KEEPS.format(result="x * 2")), ("incorrect",)),
        },
    ),
    "counts_up": Form(
        module("x\nreturn x * 2", "return [torch.arange(16384.0).view(256, 64)]"),
        {
            "computes_once": (candidate(KEEPS.format(result="x * 2")), RIGHT),
            "adds_one": (candidate("x\nreturn x + 1"), ("incorrect",)),
        },
        told="get_inputs() returned the same at each draw", note="same_inputs",
    ),
    "zeros_for_all_draws": Form(
        module("x\nreturn torch.relu(x - 9)", "return [torch.rand(256, 64)]"),
        {
            "writes_zeros": (candidate("x\nreturn torch.zeros_like(x)"), RIGHT),
            "writes_ones": (candidate("x\nreturn torch.ones_like(x)"), ("incorrect",)),
        },
        told="its output was the same for all draws", note="same_output",
    ),
    "running_statistics": Form(
        module("x\nreturn self.norm(x)", "return [torch.rand(256, 64)]", init=NORM),
        {
            "moves_them": (candidate("x\nreturn self.norm(x)", init=NORM), RIGHT),
            "leaves_them": (candidate(
                "x\nnorm = self.norm\nreturn F.batch_norm(x, None, None, norm.weight, norm.bias, True)", init=NORM), RIGHT),
            "leaves_them_later": (candidate(
                "x\nnorm = self.norm\nif norm.num_batches_tracked < 30:\n    return norm(x)\n"
                "return F.batch_norm(x, None, None, norm.weight, norm.bias, True)", init=NORM), RIGHT),
            "uses_them": (candidate("x\nself.norm.eval()\nreturn self.norm(x)", init=NORM), ("incorrect",)),
        },
    ),
}

REFUSED = {
    "view_of_input": (module("x\nreturn x.transpose(0, 1)", "return [torch.rand(8, 4)]"), "returns an input, or a view of one"),
    "follows_values": (module("x\nreturn x[x > 0.5]", "return [torch.rand(64, 64)]"), "whose shape follows the values"),
    "slightly_random": (module("x\nreturn x + 1e-5 * torch.randn_like(x)", "return [torch.rand(8, 64)]"), "is random: two calls"),
}


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("forms")
    for folder in ("problems", "mine"):
        (bench.folder / folder).mkdir()
    forms = JUDGED | {name: Form(text, {"copy": (text.replace("Model", "ModelNew"), ())}) for name, (text, _) in REFUSED.items()}
    for name, form in forms.items():
        (bench.folder / f"problems/{name}.py").write_text(form.reference, encoding="utf-8")
        (bench.folder / f"problems/{name}.yaml").write_text(YAML.format(name=name), encoding="utf-8")
        (bench.folder / "mine" / name).mkdir()
        for candidate_name, (source, _) in form.candidates.items():
            (bench.folder / f"mine/{name}/{candidate_name}.py").write_text(source, encoding="utf-8")
    return bench


@pytest.fixture(scope="module")
def ended(bench):
    return bench.end(bench.judge(bench.folder / "problems", bench.folder / "mine", "cpu"))


@pytest.fixture(scope="module")
def rows(bench, ended):
    """Each problem's rows by candidate, as the results have them."""
    assert ended.code == 0, ended.err[-2000:]
    found: dict = {}
    for path in (bench.folder / "results").rglob("*.csv"):
        for record in read_records(path):
            found.setdefault(record.problem, {})[record.candidate] = record
    return found


@pytest.mark.parametrize(
    ("name", "of"), [(name, of) for name, form in JUDGED.items() for of in form.candidates], ids=lambda value: value
)
def test_the_honest_are_ok_and_the_wrong_are_not(rows, name, of):
    row = rows[name][of]
    assert row.status.value in JUDGED[name].candidates[of][1], row.reason
    assert row.rank is None or not JUDGED[name].note


@pytest.mark.parametrize("name", JUDGED)
def test_what_a_problem_cannot_show_is_in_each_row_and_told_once(rows, ended, name):
    form = JUDGED[name]
    assert {row.problem_note for row in rows[name].values()} == {form.note or None}
    if form.told:
        assert ended.out.count(f"note on {name}: ") == 1 and form.told in " ".join(ended.out.split())


def test_a_copy_to_the_references_order_is_told_of_where_there_is_one(rows):
    of = rows["in_another_order"]
    assert "in another order of dimensions" in of["channels_last"].warnings
    assert "another order" not in (of["as_the_reference"].warnings or "")
    assert "in another in a timed one" in of["another_order_later"].reason
    assert of["negated_when_it_is_read"].reason_code == "wrong_layout"


def test_who_leaves_the_running_statistics_as_they_are_is_told_apart(rows):
    of = rows["running_statistics"]
    assert (of["moves_them"].state_moved, of["leaves_them"].state_moved) == (True, False)
    if of["leaves_them_later"].status.value == "ok":  # what was timed was not all of it
        assert of["leaves_them_later"].state_moved is False and of["leaves_them_later"].rank is None
    assert of["eager"].state_moved is None and rows["counts_up"]["adds_one"].state_moved is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_costs_its_line_with_a_sentence(rows, ended, name):
    assert name not in rows
    said = " ".join((ended.out + ended.err).split())
    assert REFUSED[name][1] in said and "Traceback" not in said


def test_by_itself_such_a_problem_ends_with_2_and_says_what_to_do(bench):
    end = bench.end(bench.judge(bench.folder / "problems/view_of_input.yaml", bench.folder / "mine/view_of_input", "cpu"))
    assert end.code == 2 and "Let it return a copy, as .clone() makes it" in " ".join(end.err.split())
