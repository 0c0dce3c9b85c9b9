"""The frames that a builder may send, checked as they come.

A builder runs the candidate's code, so any of its words may be forged. What is wrong with a frame is said of it here; an
exception in what is made of a frame later is this software's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.verdict import ReasonCode
from harness.protocol.frames import BadFrame

# What the build of a candidate may fail by, but for what is missing on this machine.
FAILURE_CODES = {
    "syntax_error": ReasonCode.SYNTAX_ERROR, "import_error": ReasonCode.IMPORT_ERROR,
    "no_model_new": ReasonCode.NO_MODEL_NEW, "compile_error": ReasonCode.COMPILE_ERROR,
}
MISSING = ("no_nvcc", "no_triton")
_LISTS = ("extensions", "files")
_LISTS_OR_NONE = ("warnings", "failed")
_LONGEST_NAME = 1000  # characters: names are handed on to the worker
_OF_EXTENSION = ("key", "path", "module_name", "cuda", "headers", "is_python_module")


def check_answer(frame: Mapping[str, Any]) -> None:
    """Raise BadFrame where `frame` is no answer of a builder's, of the form that `builder.build` describes."""
    if "log" not in frame or not all(isinstance(frame.get(name), list) for name in _LISTS):
        raise BadFrame("an answer without its lists or its log")
    if not all(isinstance(frame.get(name) or [], list) for name in _LISTS_OR_NONE):
        raise BadFrame("an answer whose warnings or failed extensions are no list")
    if not all(len(str(key)) <= _LONGEST_NAME for key in frame.get("failed") or ()):
        raise BadFrame("an answer with names that are none")
    if not all(_is_extension(each) for each in frame["extensions"]):
        raise BadFrame("an answer with extensions that are none")
    failure = frame.get("failure")
    if failure is not None and not _is_failure(failure):
        raise BadFrame("an answer with a failure that is none")


def check_question(frame: Mapping[str, Any]) -> None:
    """Raise BadFrame where `frame` asks in other words than a builder's that a call be compiled."""
    call = frame.get("compile")
    is_call = isinstance(call, dict) and isinstance(call.get("arguments"), dict) and isinstance(call.get("state"), dict)
    if not is_call or not isinstance(call["state"].get("common"), list) or "slim_headers" not in frame:
        raise BadFrame("a question that is none")


def _is_extension(entry: Any) -> bool:
    if not isinstance(entry, dict) or not all(name in entry for name in _OF_EXTENSION):
        return False
    names = [entry[name] for name in ("key", "path", "module_name")]
    has_names = all(isinstance(name, str) and len(name) <= _LONGEST_NAME for name in names)
    return has_names and isinstance(entry.get("refused") or {}, dict)


def _is_failure(failure: Any) -> bool:
    if not isinstance(failure, dict) or "message" not in failure:
        return False
    kind = failure.get("kind")
    return isinstance(kind, str) and (kind in FAILURE_CODES or kind in MISSING)
