"""Reads configs/gpus.yaml and finds the datasheet peaks that belong to a device name.

A name that resembles an entry but is another product (a laptop part, a MIG slice) gets no peaks at all: an
empty column is better than a percentage of the wrong card. The arithmetic on the peaks is in `physics`.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.model.files.yaml_lines import YamlFile, read_yaml
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
    file = read_yaml(path)
    gpus, never = file.values.get("gpus"), file.values.get("never", [])
    if not isinstance(gpus, dict):
        raise file.fault(["gpus"], "needs a mapping 'gpus:' from a name to its peaks")
    if not _is_texts(never):
        raise file.fault(["never"], "'never' is a list of texts")
    if any(_occurs(text, device_name) for text in never):
        return None
    best: tuple[int, Peaks] | None = None
    for name, entry in gpus.items():
        peaks = _peaks_of(name, entry, file)
        if any(_occurs(text, device_name) for text in entry.get("except", [])):
            continue
        length = max((len(text) for text in entry["match"] if _occurs(text, device_name)), default=0)
        if length and (best is None or length > best[0]):
            best = (length, peaks)
    return best[1] if best else None


def _occurs(text: str, device_name: str) -> bool:
    # Whole words: A10 is not in A100, nor H20 in H200, nor H200 in GH200.
    return re.search(rf"(?<![0-9a-z]){re.escape(text)}(?![0-9a-z])", device_name, re.IGNORECASE) is not None


def _peaks_of(name: str, entry: object, file: YamlFile) -> Peaks:
    """One entry as Peaks, or InputError at its line."""
    keys = ("gpus", name)
    if not isinstance(entry, dict):
        raise file.fault(keys, f"{name}: needs a mapping of peaks")
    wrong = [f"{key} missing" for key in _REQUIRED if key not in entry]
    wrong += [f"unknown {key}" for key in entry if key not in _KEYS]
    if wrong:
        raise file.fault(keys, f"{name}: {', '.join(wrong)}", f"The keys are {', '.join(_KEYS)}.")
    for key in _NUMBERS:
        value = entry.get(key)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value < float("inf")):
            raise file.fault(keys, f"{name}: {key} is a positive number, not {value!r}")
        if value is None and key in _REQUIRED:
            raise file.fault(keys, f"{name}: {key} cannot be empty")
    if not (_is_texts(entry["match"]) and entry["match"] and _is_texts(entry.get("except", []))):
        raise file.fault(keys, f"{name}: match and except are lists of texts found in device names")
    if not (isinstance(entry["source"], str) and entry["source"].strip()):
        raise file.fault(keys, f"{name}: source names the document that the peaks stand in")
    numbers = {key: None if entry.get(key) is None else float(entry[key]) for key in _NUMBERS}
    return Peaks(source=entry["source"], **numbers)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
