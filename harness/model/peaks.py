"""Reads configs/gpus.yaml and finds the datasheet peaks that belong to a device name.

A name that resembles an entry but is another product (a laptop part, a MIG slice) gets no peaks at all: an
empty column is better than a percentage of the wrong card. The arithmetic on the peaks is in `physics`.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from harness.model.errors import InputError
from harness.model.paths import CONFIGS_DIR
from harness.model.physics import Peaks

GPUS_YAML = CONFIGS_DIR / "gpus.yaml"

_NUMBERS = ("fp32_tflops", "tensor16_tflops", "tensor16_acc16_tflops", "tensor_tf32_tflops", "bandwidth_gbytes_s")
_REQUIRED = ("fp32_tflops", "bandwidth_gbytes_s", "source", "match")
_KEYS = (*_NUMBERS, "source", "match", "except")


def load_peaks(device_name: str, path: Path = GPUS_YAML) -> Peaks | None:
    """Peaks of the GPU that the driver calls `device_name`, or None when the file does not know it.

    An entry knows a device when one of its `match` texts occurs in the name as whole words, whatever the
    case, and none of its `except` texts or the file's own does; the longest match wins. Raises InputError,
    with the line, for a file that is missing or not of this form.
    """
    entries, never, lines = _read(path)
    if any(_occurs(text, device_name) for text in never):
        return None
    best: tuple[int, Peaks] | None = None
    for name, entry in entries.items():
        peaks = _peaks_of(name, entry, path, lines.get(name))
        if any(_occurs(text, device_name) for text in entry.get("except", [])):
            continue
        length = max((len(text) for text in entry["match"] if _occurs(text, device_name)), default=0)
        if length and (best is None or length > best[0]):
            best = (length, peaks)
    return best[1] if best else None


def _occurs(text: str, device_name: str) -> bool:
    # Whole words: A10 is not in A100, nor H20 in H200, nor H200 in GH200.
    return re.search(rf"(?<![0-9a-z]){re.escape(text)}(?![0-9a-z])", device_name, re.IGNORECASE) is not None


def _read(path: Path) -> tuple[dict[str, dict], list[str], dict[str, int]]:
    """The entries by name, the texts that rule any device out, and the line of each entry."""
    try:
        text = path.read_text(encoding="utf-8")
        content, root = yaml.safe_load(text), yaml.compose(text)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the table of GPUs: {why}", path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise InputError(f"not YAML: {getattr(error, 'problem', None) or error}", path, line) from None
    if not isinstance(content, dict) or not isinstance(content.get("gpus"), dict):
        raise InputError("needs a mapping 'gpus:' from a name to its peaks", path, 1)
    never = content.get("never", [])
    if not _is_texts(never):
        raise InputError("'never' is a list of texts", path, 1)
    gpus_node = next(value for key, value in root.value if key.value == "gpus")
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in gpus_node.value}
    return {str(name): entry for name, entry in content["gpus"].items()}, never, lines


def _peaks_of(name: str, entry: object, path: Path, line: int | None) -> Peaks:
    """One entry as Peaks, or InputError at its line."""
    if not isinstance(entry, dict):
        raise InputError(f"{name}: needs a mapping of peaks", path, line)
    wrong = [f"{key} missing" for key in _REQUIRED if key not in entry]
    wrong += [f"unknown {key}" for key in entry if key not in _KEYS]
    if wrong:
        raise InputError(f"{name}: {', '.join(wrong)}", path, line, f"The keys are {', '.join(_KEYS)}.")
    for key in _NUMBERS:
        value = entry.get(key)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value < float("inf")):
            raise InputError(f"{name}: {key} is a positive number, not {value!r}", path, line)
        if value is None and key in _REQUIRED:
            raise InputError(f"{name}: {key} cannot be empty", path, line)
    if not (_is_texts(entry["match"]) and entry["match"] and _is_texts(entry.get("except", []))):
        raise InputError(f"{name}: match and except are lists of texts found in device names", path, line)
    if not (isinstance(entry["source"], str) and entry["source"].strip()):
        raise InputError(f"{name}: source names the document that the peaks stand in", path, line)
    numbers = {key: None if entry.get(key) is None else float(entry[key]) for key in _NUMBERS}
    return Peaks(source=entry["source"], **numbers)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
