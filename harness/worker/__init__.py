"""The untrusted child: it loads `ModelNew`, makes the launches it is told to, and hands back bytes and times.

Of the harness it imports `protocol` only. It knows no seed, no expected value, no tolerance and no
verdict, and is never told whether a launch is warm-up, check or timing.
"""
