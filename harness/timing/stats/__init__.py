"""From rounds of times to a speedup with its interval, and to a word: all pure arithmetic on floats.

`round_order` turns one round of A B B A into a log-ratio, `trimmed_mean` turns these into a speedup with its interval,
`interim_checks` says when to look and when to stop, `words` puts the interval into one word. Nothing here measures.
"""

from __future__ import annotations

from harness.timing.stats.interim_checks import check_of, confidence_at, next_check, should_stop, width_for
from harness.timing.stats.process_spread import (
    UNCOUNTED, PooledBaseline, eager_share, is_pooled, lowered, process_share, shifted, with_share,
)
from harness.timing.stats.round_order import log_ratio, order_of_round, typical_us
from harness.timing.stats.trimmed_mean import (
    Interval, estimate_log_ratio, estimate_speedup, load_ahead, reach_of, trimmed_mean, tukey_mclaughlin,
)
from harness.timing.stats.two_baselines import baselines_agree, may_be_processes, narrows_by, reaching, spanning, unseen
from harness.timing.stats.words import MARGINS, margin, speedup_word

__all__ = [
    "MARGINS", "UNCOUNTED", "Interval", "PooledBaseline", "baselines_agree", "confidence_at", "eager_share",
    "estimate_log_ratio", "estimate_speedup", "is_pooled", "load_ahead", "log_ratio", "check_of", "lowered",
    "margin", "may_be_processes", "narrows_by", "next_check", "order_of_round", "process_share", "reach_of",
    "reaching", "shifted", "should_stop", "spanning", "speedup_word", "trimmed_mean", "tukey_mclaughlin", "typical_us",
    "unseen", "width_for", "with_share",
]
