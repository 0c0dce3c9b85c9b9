"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import asdict, dataclass

OK, MISSING, NOTE = "ok", "missing", "note"


@dataclass(frozen=True)
class Finding:
    """`state` is "ok", "missing" or "note" (absent or weaker, and not needed here); `hint` how to get it."""

    name: str
    state: str
    text: str
    hint: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return asdict(self)
