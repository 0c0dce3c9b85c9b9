"""The sandbox around untrusted children: namespaces, limits, a scrubbed environment, and an end that leaves nothing.

`sandbox_choice` finds the strongest that the machine allows, `spawn` starts a child behind it and kills it.
"""
