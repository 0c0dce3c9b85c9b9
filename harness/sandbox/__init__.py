"""The sandbox around untrusted children: namespaces, limits, a scrubbed environment, and an end that leaves
nothing.

`sandbox_choice` finds the strongest sandbox the machine allows, `spawn` starts a child behind it and kills it. What the
child is told and what its answers mean is left to `build`, `worker` and `judge`.
"""
