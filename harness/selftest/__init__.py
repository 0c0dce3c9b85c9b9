"""The harness put to the test on the user's own machine: a corpus of cheats, faults and honest controls through a
normal run, beside what a naive judge says of each; and the control row of each shipped problem.
"""
