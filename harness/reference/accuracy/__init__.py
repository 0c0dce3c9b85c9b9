"""How exact is exact enough, and what a result that is not looks like: pure arithmetic on error figures.

`bounds` says how many units of roundoff a result may be off, `classes` names the precision that explains one
that is off by more. The figures themselves (largest error, root mean square) are measured elsewhere.
"""
