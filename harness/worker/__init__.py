"""The untrusted child: it loads `ModelNew`, makes the launches it is told to, and hands back bytes and times. It knows
no seed, expected value, tolerance or verdict, and is never told whether a launch is warm-up, check or timing.
"""
