"""Reads ``problems/NAME.yaml`` and its reference, and gathers every mistake in both before it gives up.

First what may stand in the file: each key once, its type, its words for messages and its default. Then what ties the
keys to each other and to the reference. Only `problem` imports this, while it loads a file: the engine takes a while.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import ValidationError, core_schema

from harness.model.errors import InputError
from harness.model.files.python_source import ModuleNames
from harness.model.files.reference_source import read_reference, size_error
from harness.model.files.schema_engine import checked_by, fault, key, read_section
from harness.model.files.text_files import joined
from harness.model.files.yaml_lines import YamlFile, dotted_name
from harness.model.files.yaml_mistakes import input_errors
from harness.model.formulas import Formula, FormulaError
from harness.model.spelling import hint_for

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
_FORMULA = checked_by(core_schema.no_info_before_validator_function(_formula_text, core_schema.str_schema()), _readable)


def _words(*choices: str) -> core_schema.CoreSchema:
    return core_schema.literal_schema(list(choices))


def _list_of(*choices: str) -> core_schema.CoreSchema:
    return checked_by(core_schema.list_schema(_words(*choices), min_length=1), _without_repeats)


@dataclass(frozen=True)
class SizesSchema:
    timed: dict[str, int] = key(_SIZES, "a mapping from size to number", _WHOLE, example="timed: {M: 4096}")
    check: list[dict[str, int]] = key(core_schema.list_schema(_SIZES), "a list of mappings from size to number",
                                      "a mapping from size to number", _WHOLE, example="check: [{M: 1}, {M: 31}]",
                                      default=())
    cpu: dict[str, int] | None = key(
        _SIZES, "a mapping from size to number", _WHOLE, example="cpu: {M: 512}", default=None
    )


@dataclass(frozen=True)
class UsefulSchema:
    flops: str | None = key(_FORMULA, "a formula in the sizes", example='flops: "2*M*N*K"', default=None)
    bytes: str | None = key(_FORMULA, "a formula in the sizes", example='bytes: "4*(M*K + K*N + M*N)"', default=None)


@dataclass(frozen=True)
class AccuracySchema:
    precision_class: str = key(_words("fp32", "tf32", "bf16", "fp16"), "a precision class", example="class: fp32",
                               default="fp32", alias="class",
                               synonyms={"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"})
    scale: str = key(_words("abs_inputs", "row_max"), "an error scale", example="scale: row_max", default="row_max")
    terms: str | None = key(_FORMULA, "a formula in the sizes", example="terms: K", default=None)
    contracted: list[int] | None = key(_AXES, "the list of the axes that are summed over, one for each factor",
                                       "an axis: 0, 1, 2, …", example="contracted: [1, 0]", default=None)


@dataclass(frozen=True)
class ProblemSchema:
    title: str = key(checked_by(_TEXT, lambda text: " ".join(text.split())), "a line of text",
                     example="title: Product of two lower triangular matrices")
    reference: str = key(_TEXT, "the name of a Python file beside this one", example="reference: tril_matmul.py")
    dtype: str = key(
        _words("float32", "float64", "float16", "bfloat16"), "a dtype", example="dtype: float32", default="float32",
        synonyms={"fp32": "float32", "float": "float32", "torch.float32": "float32", "fp64": "float64",
                  "double": "float64", "fp16": "float16", "half": "float16", "bf16": "bfloat16"},
    )
    mode: str = key(_words("forward", "forward_backward"), "what a call computes", example="mode: forward_backward",
                    default="forward",
                    synonyms={"backward": "forward_backward", "training": "forward_backward", "inference": "forward"})
    sizes: SizesSchema | None = key(SizesSchema, "a mapping with timed, check and cpu",
                                    example="sizes: {timed: {M: 4096}, cpu: {M: 512}}", default=None)
    useful: UsefulSchema = key(UsefulSchema, "a mapping with flops and bytes", example='useful: {flops: "2*M*N*K"}',
                               default=UsefulSchema())
    accuracy: AccuracySchema = key(AccuracySchema,
                                   "a precision class or a mapping with class, scale, terms and contracted",
                                   example="accuracy: {class: fp32}", default=AccuracySchema(), before=_class_alone)
    baselines: list[str] = key(checked_by(_list_of("eager", "torch.compile", "eager-tf32"), _with_eager),
                               "a list of eager, torch.compile and eager-tf32",
                               example="baselines: [eager, torch.compile]", default=("eager", "torch.compile"),
                               synonyms={"compile": "torch.compile", "inductor": "torch.compile", "tf32": "eager-tf32"})
    baseline: str | None = key(_TEXT, "the path of a candidate file", example="baseline: expert.py", default=None)
    kinds: list[str] = key(_list_of("custom", "mixed", "library"), "a list of custom, mixed and library",
                           example="kinds: [custom]", default=("custom",))


@dataclass(frozen=True)
class ProblemFile:
    """A problem file without mistakes, and the text of the reference it names."""

    schema: ProblemSchema
    yaml_text: str
    reference_path: Path
    reference_text: str


def read_problem_file(file: YamlFile) -> ProblemFile:
    """The problem in `file`. Raises InputError."""
    path = file.path
    schema, errors, bad = _validated(file)
    reference_path, reference_text, names = path.parent / schema.reference, "", None
    if "reference" not in bad:
        try:
            reference_text, names, reference_errors = read_reference(reference_path)
            errors += reference_errors
        except InputError as error:
            message = f"reference {file.values['reference']}: {error.message}"
            errors.append(file.fault(("reference",), message, error.hint))
    if "sizes" not in bad:
        unassigned = [] if names is None else _unassigned_sizes(names, reference_path, schema.sizes, file)
        # One wrong name is wrong wherever the right one stands, and that would be all that the user sees.
        errors += unassigned or _size_name_errors(schema.sizes, file) + _formula_errors(schema, file)
    else:
        errors += _formula_name_errors(schema, file)
    if errors:
        # the user's own file first, each file in the order of its lines
        raise joined(sorted(errors, key=lambda each: (str(each.path) != str(path), each.line or 0)))
    return ProblemFile(schema, file.text, reference_path, reference_text)


def _validated(file: YamlFile) -> tuple[ProblemSchema, list[InputError], set[str]]:
    """The schema's view of the file, what it refuses, and the top-level keys whose values are not to be used: they are
    left at their defaults, so that the rest of the file can still be checked in the same run.
    """
    try:
        return read_section(ProblemSchema, file.values), [], set()
    except ValidationError as error:
        errors = input_errors(error, ProblemSchema, file)
        bad = {str(finding["loc"][0]) for finding in error.errors(include_url=False)}
    rest = {name: value for name, value in file.values.items() if name not in bad}
    # stand-ins for the two keys without a default; what they stand for is not looked at
    return read_section(ProblemSchema, {"title": "-", "reference": "-", **rest}), errors, bad


def _size_name_errors(sizes: SizesSchema | None, file: YamlFile) -> list[InputError]:
    """Sizes that are no Python names, and check and cpu sizes that do not name exactly the timed ones."""
    if sizes is None:
        return []
    errors, timed = [], list(sizes.timed)
    for name in timed:
        if not name.isidentifier() or keyword.iskeyword(name):
            message = f"'{name}' is no name that Python could give to a size"
            hint = "Use letters, digits and underscores, a letter first."
            errors.append(file.fault(("sizes", "timed", name), message, hint))
    others = [(("sizes", "check", index), each) for index, each in enumerate(sizes.check)]
    if sizes.cpu is not None:
        others.append((("sizes", "cpu"), sizes.cpu))
    for keys, each in others:
        missing = [name for name in timed if name not in each]
        foreign = [name for name in each if name not in timed]
        if foreign:
            hint = hint_for(foreign[0], missing) or "Add it to sizes.timed or take it away."
            message = f"{dotted_name(keys)} has '{foreign[0]}', which is no size of sizes.timed ({', '.join(timed)})"
            errors.append(file.fault((*keys, foreign[0]), message, hint))
        elif missing:
            whole = ", ".join(f"{name}: {each.get(name, '…')}" for name in timed)
            message = f"{dotted_name(keys)} leaves out {', '.join(missing)}"
            errors.append(file.fault(keys, message, f"Write {{{whole}}}."))
    return errors


def _unassigned_sizes(
    names: ModuleNames, reference_path: Path, sizes: SizesSchema | None, file: YamlFile
) -> list[InputError]:
    """The timed sizes that the reference does not assign."""
    if sizes is None:
        return []
    elsewhere = {name for each in (*sizes.check, sizes.cpu or {}) for name in each} - set(sizes.timed)
    meant = [name for name in sorted(elsewhere) if len(names.assigned.get(name, [])) == 1]
    errors = [
        size_error(names, reference_path, name, value, file.path, file.line_of(("sizes", "timed", name)), meant)
        for name, value in sizes.timed.items() if name.isidentifier()
    ]
    return [error for error in errors if error is not None]


def _formula_errors(schema: ProblemSchema, file: YamlFile) -> list[InputError]:
    """Formulas without a sensible value at a size they will be evaluated at: useful work must be positive where it is
    timed, and a sum has at least one term wherever it is checked.
    """
    sizes = schema.sizes
    timed = [sizes.timed, *([sizes.cpu] if sizes.cpu else [])] if sizes else [{}]
    everywhere = [*timed, *(sizes.check if sizes else [])]
    least_of = {"useful": (timed, 0.0, "more than 0"), "accuracy": (everywhere, 1.0, "at least 1")}
    errors = []
    for keys, formula in _formulas(schema):
        places, least, wanted = least_of[keys[0]]
        try:
            for place in places:
                if set(place) == set(timed[0]):
                    _check_value(formula, place, least, wanted)
        except FormulaError as error:
            errors.append(file.fault(keys, f"{dotted_name(keys)} {error.fault}", error.hint))
    return errors


def _formulas(schema: ProblemSchema) -> list[tuple[tuple[str, str], Formula]]:
    """Each formula that the file has, with its keys."""
    texts = {("useful", "flops"): schema.useful.flops, ("useful", "bytes"): schema.useful.bytes,
             ("accuracy", "terms"): schema.accuracy.terms}
    return [(keys, Formula(text)) for keys, text in texts.items() if text is not None]


def _check_value(formula: Formula, sizes: dict[str, int], least: float, wanted: str) -> None:
    value = formula.evaluate(sizes)
    if value < least or value == 0.0:
        at = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise FormulaError(formula.text, f"must be {wanted}, but is {value:g}" + (f" at {at}" if at else ""))


def _formula_name_errors(schema: ProblemSchema, file: YamlFile) -> list[InputError]:
    """Unknown names in formulas where the sizes themselves are not fit to put in."""
    sizes = file.values["sizes"]
    timed = sizes.get("timed") if isinstance(sizes, dict) else None
    if not isinstance(timed, dict) or not timed:
        return []
    errors = []
    for keys, formula in _formulas(schema):
        try:
            formula.check_names(timed)
        except FormulaError as error:
            errors.append(file.fault(keys, f"{dotted_name(keys)} {error.fault}", error.hint))
    return errors
