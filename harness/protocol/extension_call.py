"""One call of `load_inline` or `load` as JSON has it, so that another process can make the same call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.protocol.extension_key import LEFT_OUT


def call_as_json(kind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return `kind`, the `arguments` that decide what is built, and the `texts` of the files that "load" names, by path."""
    kept = {name: _as_json(value) for name, value in arguments.items() if name not in LEFT_OUT and value is not None}
    texts = {}
    if kind == "load":
        kept["sources"] = [kept["sources"]] if isinstance(kept.get("sources"), str) else kept.get("sources") or []
        with suppress(OSError):  # one that is missing is the builder's to miss
            for path in kept["sources"]:
                texts[path] = Path(path).read_text(encoding="utf-8", errors="replace")
    return {"kind": kind, "arguments": kept, "texts": texts}


def _as_json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    return value if isinstance(value, (str, int, float, bool)) else str(value)
