"""What may stand in ``problems/NAME.yaml``: each key once, its type, its words for messages and its default.

Only `problem` imports this, and only while it loads a file: what checks it takes a while to import. What ties keys to each other and to the reference is checked in `problem_checks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import core_schema

from harness.model.files.yaml_schema import checked_by, fault, key
from harness.model.formulas import Formula, FormulaError

_WHOLE = "a whole number of at least 1"


def _formula_text(value: Any) -> Any:
    """Numbers are formulas too; everything else must be text already."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _readable(text: str) -> str:
    try:
        Formula(text)
    except FormulaError as error:
        raise fault(error.fault, error.hint) from None
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without_repeats(items: list[str]) -> list[str]:
    for item in items:
        if items.count(item) > 1:
            raise fault(f"names '{item}' twice", "Once is enough.")
    return items


def _with_eager(items: list[str]) -> list[str]:
    if "eager" not in items:
        raise fault("leaves out eager, which every speedup is measured against", "Add eager to the list.")
    return items


def _class_alone(value: Any) -> Any:
    """``accuracy: tf32`` is short for ``accuracy: {class: tf32}``."""
    return {"class": value} if isinstance(value, str) else value


_TEXT = core_schema.str_schema(min_length=1)
_SIZES = core_schema.dict_schema(core_schema.str_schema(), core_schema.int_schema(ge=1), min_length=1)
_AXES = core_schema.list_schema(core_schema.int_schema(ge=0), min_length=2)
_FORMULA = checked_by(
    core_schema.no_info_before_validator_function(_formula_text, core_schema.str_schema()), _readable
)


def _words(*choices: str) -> core_schema.CoreSchema:
    return core_schema.literal_schema(list(choices))


def _list_of(*choices: str) -> core_schema.CoreSchema:
    return checked_by(core_schema.list_schema(_words(*choices), min_length=1), _without_repeats)


@dataclass(frozen=True)
class SizesSchema:
    timed: dict[str, int] = key(_SIZES, "a mapping from size to number", _WHOLE, example="timed: {M: 4096}")
    check: list[dict[str, int]] = key(
        core_schema.list_schema(_SIZES), "a list of mappings from size to number", "a mapping from size to number",
        _WHOLE, example="check: [{M: 1}, {M: 31}]", default=(),
    )
    cpu: dict[str, int] | None = key(
        _SIZES, "a mapping from size to number", _WHOLE, example="cpu: {M: 512}", default=None
    )


@dataclass(frozen=True)
class UsefulSchema:
    flops: str | None = key(_FORMULA, "a formula in the sizes", example='flops: "2*M*N*K"', default=None)
    bytes: str | None = key(
        _FORMULA, "a formula in the sizes", example='bytes: "4*(M*K + K*N + M*N)"', default=None
    )


@dataclass(frozen=True)
class AccuracySchema:
    precision_class: str = key(
        _words("fp32", "tf32", "bf16", "fp16"), "a precision class", example="class: fp32", default="fp32",
        alias="class",
        synonyms={"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"},
    )
    scale: str = key(
        _words("abs_inputs", "row_max"), "an error scale", example="scale: row_max", default="row_max"
    )
    terms: str | None = key(_FORMULA, "a formula in the sizes", example="terms: K", default=None)
    contracted: list[int] | None = key(
        _AXES, "the list of the axes that are summed over, one for each factor", "an axis: 0, 1, 2, …",
        example="contracted: [1, 0]", default=None,
    )


@dataclass(frozen=True)
class ProblemSchema:
    title: str = key(
        checked_by(_TEXT, _one_line), "a line of text", example="title: Product of two lower triangular matrices"
    )
    reference: str = key(_TEXT, "the name of a Python file beside this one", example="reference: tril_matmul.py")
    dtype: str = key(
        _words("float32", "float64", "float16", "bfloat16"), "a dtype", example="dtype: float32", default="float32",
        synonyms={"fp32": "float32", "float": "float32", "torch.float32": "float32", "fp64": "float64",
                  "double": "float64", "fp16": "float16", "half": "float16", "bf16": "bfloat16"},
    )
    mode: str = key(
        _words("forward", "forward_backward"), "what a call computes", example="mode: forward_backward",
        default="forward",
        synonyms={"backward": "forward_backward", "training": "forward_backward", "inference": "forward"},
    )
    sizes: SizesSchema | None = key(
        SizesSchema, "a mapping with timed, check and cpu", example="sizes: {timed: {M: 4096}, cpu: {M: 512}}",
        default=None,
    )
    useful: UsefulSchema = key(
        UsefulSchema, "a mapping with flops and bytes", example='useful: {flops: "2*M*N*K"}', default=UsefulSchema()
    )
    accuracy: AccuracySchema = key(
        AccuracySchema, "a precision class or a mapping with class, scale, terms and contracted",
        example="accuracy: {class: fp32}", default=AccuracySchema(), before=_class_alone,
    )
    baselines: list[str] = key(
        checked_by(_list_of("eager", "torch.compile", "eager-tf32"), _with_eager),
        "a list of eager, torch.compile and eager-tf32", example="baselines: [eager, torch.compile]",
        default=("eager", "torch.compile"),
        synonyms={"compile": "torch.compile", "inductor": "torch.compile", "tf32": "eager-tf32"},
    )
    baseline: str | None = key(
        _TEXT, "the path of a candidate file", example="baseline: expert.py", default=None,
    )
    kinds: list[str] = key(
        _list_of("custom", "mixed", "library"), "a list of custom, mixed and library", example="kinds: [custom]",
        default=("custom",),
    )
