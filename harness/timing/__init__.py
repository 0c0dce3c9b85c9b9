"""How long a call takes: rounds of candidate and baseline, the probes between them, and what their ratios come to."""
