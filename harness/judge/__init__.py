"""The judge: the trusted side of every verdict. It draws inputs, makes the truth, times, compares and decides.

Theory of operation. Three kinds of process take part, and one of them is trusted.

- The **judge** (the package `judge`, one process for each device) owns seeds, expected outputs, bounds and verdicts.
- A **builder** imports the candidate once, without a GPU. A second builder compiles the candidate's extensions, and runs
  none of its code. The judge keeps the hashes of those extensions.
- A **worker** (the package `worker`) opens those extensions, and no others, and calls `forward` when it is told to.

All other processes run the harness's own code alone: builders that compile, the fork server behind builders and workers,
each sandbox's first process, and, with several devices, the parent of the judges.

The builder that imports, and the worker, run the candidate's code. They may crash, hang or lie, so their word alone decides nothing.
Length-limited JSON and raw bytes cross between the processes, and never a pickle. The **control** is a worker that runs
the reference itself before any candidate: it shows what an honest process looks like on this device today.

A launch goes in this order, all of it in one stream. The worker is never told whether it is a check, a warm-up or
timed.

1. The stream waits until the judge releases the launch. A queue of launches is made first, and is then let go.
2. The inputs are unmasked. Until then they were noise, under a key that the worker did not have.
3. The cache is made cold, and the worker's stream proves it with a word that the judge drew for this launch. The judge
   looks at that proof in each launch on a CPU, and on a GPU in launches that are drawn.
4. The judge opens the window: start event, `forward`, stop event.
5. The output is copied out, and what `forward` returned is overwritten with 0xFF.

What proves what:

- The judge compares every timed output with a truth of its own. Results that are remembered, late or cheap are wrong.
- The judge's own clock runs beside the worker's events, and the gap between them must be the control's.
- Four probes look for an early start, a late write, a flush that was left out, and work that goes by known values.
- The judge times the baseline in its own process in the same rounds, where no candidate can slow it down unseen.
- Native code in the worker lists a GPU's kernels for the judge, in a fifth probe. A list counts where it is whole, and
  output and duration are those of a timed launch. On a CPU a profiler in the worker makes the list, and the
  operating system samples from outside what the worker's cores run, in timed launches too.
"""
