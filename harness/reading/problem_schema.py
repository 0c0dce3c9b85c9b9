"""What may stand in ``problems/NAME.yaml``: each key once, its type, its words for messages and its default.

Only `problem` imports this, and only while it loads a file: pydantic takes a tenth of a second to import.
What ties keys to each other and to the reference is checked in `problem_checks`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, field_validator

from harness.formulas import Formula, FormulaError
from harness.reading.yaml_mistakes import fault, key

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


Size = Annotated[StrictInt, Field(ge=1)]
Sizes = Annotated[dict[str, Size], Field(min_length=1)]
FormulaText = Annotated[str, BeforeValidator(_formula_text), AfterValidator(_readable)]
Baseline = Literal["eager", "torch.compile", "eager-tf32"]
Kind = Literal["custom", "mixed", "library"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class SizesSchema(_Section):
    timed: Sizes = key("a mapping from size to number", _WHOLE, example="timed: {M: 4096}")
    check: list[Sizes] = key(
        "a list of mappings from size to number", "a mapping from size to number", _WHOLE,
        example="check: [{M: 1}, {M: 31}]", default=[],
    )
    cpu: Sizes | None = key("a mapping from size to number", _WHOLE, example="cpu: {M: 512}", default=None)


class UsefulSchema(_Section):
    flops: FormulaText | None = key("a formula in the sizes", example='flops: "2*M*N*K"', default=None)
    bytes: FormulaText | None = key(
        "a formula in the sizes", example='bytes: "4*(M*K + K*N + M*N)"', default=None
    )


class AccuracySchema(_Section):
    precision_class: Literal["fp32", "tf32", "bf16", "fp16"] = key(
        "a precision class", example="class: fp32", default="fp32", alias="class",
        synonyms={"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"},
    )
    scale: Literal["abs_inputs", "row_max"] = key(
        "an error scale", example="scale: row_max", default="row_max"
    )
    terms: FormulaText | None = key("a formula in the sizes", example="terms: K", default=None)
    contracted: Annotated[list[Annotated[StrictInt, Field(ge=0)]], Field(min_length=2)] | None = key(
        "the list of the axes that are summed over, one for each factor", "an axis: 0, 1, 2, …",
        example="contracted: [1, 0]", default=None,
    )


class ProblemSchema(_Section):
    title: Annotated[str, Field(min_length=1), AfterValidator(_one_line)] = key(
        "a line of text", example="title: Product of two lower triangular matrices"
    )
    reference: Annotated[str, Field(min_length=1)] = key(
        "the name of a Python file beside this one", example="reference: tril_matmul.py"
    )
    dtype: Literal["float32", "float64", "float16", "bfloat16"] = key(
        "a dtype", example="dtype: float32", default="float32",
        synonyms={"fp32": "float32", "float": "float32", "torch.float32": "float32", "fp64": "float64",
                  "double": "float64", "fp16": "float16", "half": "float16", "bf16": "bfloat16"},
    )
    mode: Literal["forward", "forward_backward"] = key(
        "what a call computes", example="mode: forward_backward", default="forward",
        synonyms={"backward": "forward_backward", "training": "forward_backward", "inference": "forward"},
    )
    sizes: SizesSchema | None = key(
        "a mapping with timed, check and cpu", example="sizes: {timed: {M: 4096}, cpu: {M: 512}}",
        default=None,
    )
    useful: UsefulSchema = key(
        "a mapping with flops and bytes", example='useful: {flops: "2*M*N*K"}', default=UsefulSchema.model_construct()
    )
    accuracy: AccuracySchema = key(
        "a precision class or a mapping with class, scale, terms and contracted",
        example="accuracy: {class: fp32}", default=AccuracySchema.model_construct(),
    )
    baselines: Annotated[
        list[Baseline], Field(min_length=1), AfterValidator(_without_repeats), AfterValidator(_with_eager)
    ] = key("a list of eager, torch.compile and eager-tf32", example="baselines: [eager, torch.compile]",
            default=["eager", "torch.compile"],
            synonyms={"compile": "torch.compile", "inductor": "torch.compile", "tf32": "eager-tf32"})
    kinds: Annotated[list[Kind], Field(min_length=1), AfterValidator(_without_repeats)] = key(
        "a list of custom, mixed and library", example="kinds: [custom]", default=["custom"]
    )

    @field_validator("accuracy", mode="before")
    @classmethod
    def _class_alone(cls, value: Any) -> Any:
        """``accuracy: tf32`` is short for ``accuracy: {class: tf32}``."""
        return {"class": value} if isinstance(value, str) else value
