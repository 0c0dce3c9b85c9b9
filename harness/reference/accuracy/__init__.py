"""How exact is exact enough, and what a result that is not looks like: pure arithmetic on error figures.

`bounds` says how many units of roundoff a result may be off, `classes` names the precision that explains one
that is off by more. The figures themselves (largest error, root mean square) are measured elsewhere.
"""

from __future__ import annotations

from harness.reference.accuracy.bounds import (
    EXACT_FAMILIES, UNIT_ROUNDOFF, Bounds, bounds_for, error_unit, fp32_bounds, has_random_signs, is_exact,
    representation_u,
)
from harness.reference.accuracy.classes import ErrorFigures, classify, reason, sentence, within, worst

__all__ = [
    "EXACT_FAMILIES", "UNIT_ROUNDOFF", "Bounds", "ErrorFigures", "bounds_for", "classify", "error_unit",
    "fp32_bounds", "has_random_signs", "is_exact", "reason", "representation_u", "sentence", "within", "worst",
]
