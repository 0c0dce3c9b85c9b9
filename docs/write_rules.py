"""Writes docs/rules.md: the words stand here, every constant in them is the code's own.

`python docs/write_rules.py` writes it; tests/test_rules.py fails while it is not current. To change a rule's words, change
them here. To name another constant, give it a name in `constants`, which says where the code has it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import harness.judge  # noqa: E402
from harness.model.device_limits import CPU, CUDA  # noqa: E402
from harness.model.settings import load_settings  # noqa: E402
from harness.reference.accuracy.bounds import fp32_bounds, representation_u  # noqa: E402
from harness.reference.accuracy.without_terms import Spread, bounds_without_terms  # noqa: E402
from harness.sandbox.limits import default_limits  # noqa: E402

PATH = REPOSITORY / "docs" / "rules.md"

# Where the code has each constant that it names: below `harness`, and the attribute.
_NAMED = {
    "row_elements": "reference.accuracy.bounds.ROW_ELEMENTS",
    "chain": "reference.accuracy.without_terms.LONGEST_CHAIN",
    "chain_product": "reference.accuracy.without_terms.LONGEST_PRODUCT",
    "far_u": "reference.accuracy.without_terms.FAR_U",
    "noise_rms_u": "reference.accuracy.without_terms.NOISE_RMS_U",
    "split_u": "reference.accuracy.classes.SPLIT_CEILING_U",
    "mixed_tf32_u": "reference.accuracy.classes.MIXED_TF32_FLOOR_U",
    "binades": "reference.inputs.families.SPREAD_BINADES",
    "edge_times": "reference.edges._MARGIN",
    "small_row": "reference.spreads._SMALLEST",
    "zeros_left": "reference.block_sparse_product.MOST_LEFT",
    "slow_truth_s": "reference.reference_model._SLOW_TRUTH_S",
    "longer": "reference.reference_model._LONGER",
    "near_eager": "reference.error_figures._NEAR_EAGER",
    "float64_least": "reference.reference_model._LEAST_ONE_OF",
    "float64_most": "reference.reference_model._MOST_ONE_OF",
    "same_draws": "reference.reference_checks._SAME_DRAWS",
    "same_u": "reference.reference_checks._SAME_U",
    "random_u": "reference.reference_checks._RANDOM_U",
    "state_share": "judge.moved_state._OFF_SHARE",
    "confidence": "model.settings.Settings.confidence",
    "trim": "timing.stats.trimmed_mean.TRIM",
    "margins": "timing.stats.call.MARGINS",
    "gpu_cache_times": "protocol.clocks.cold_cache.GPU_FACTOR",
    "cpu_cache_bytes": "protocol.clocks.cold_cache._CPU_MOST_BYTES",
    "segment_ms": "model.settings.Settings.segment_ms",
    "segment_launches": "timing.segment_length.MOST_LAUNCHES",
    "lead_in_one_of": "timing.segments._LEAD_IN_ONE_OF",
    "gate_s": "launch.conversation.GATE_PATIENCE_S",
    "stream_takes": "timing.doubts.STREAM_TAKES",
    "by_chance": "timing.doubts._BY_CHANCE",
    "ungated_budgets": "timing.stopping_rule._UNGATED_BUDGETS",
    "longer_each_us": "judge.kernel_trace._EACH_US",
    "longer_each_ungated_us": "judge.kernel_trace._EACH_UNGATED_US",
    "fewest_rounds": "timing.stopping_rule._FEWEST_ROUNDS",
    "short_us": "timing.stopping_rule._SHORT_US",
    "short_share": "timing.stopping_rule._SHORT_SHARE",
    "far_slower": "timing.segment_length.FAR_SLOWER",
    "slower": "timing.segment_length.SLOWER",
    "brief_rounds": "timing.rounds._BRIEF_ROUNDS",
    "row_times": "judge.entry_verdict._TIMES_CONTROLS_ROW",
    "wait_s": "device.lock.LONGEST_WAIT_S",
    "apart_share": "timing.stats.two_baselines.APART_SHARE",
    "apart_us": "timing.stats.two_baselines.APART_LEAST_US",
    "kernel_us": "timing.stats.process_spread._EACH_KERNEL_US",
    "pooled_us": "timing.stats.process_spread._SHORT_BELOW_US",
    "floor_share": "audit.clock_audit._FLOOR_SHARE",
    "less_share": "timing.control.LESS_SHARE",
    "flush_share": "audit.clock_audit._FLUSH_SHARE",
    "ungated_us": "audit.clock_audit._UNGATED_BLAMED_US",
    "probe_tries": "timing.probes.result._TRIES",
    "probe_often": "timing.probes.result._OFTEN",
    "probe_some": "timing.probes.result._SHARE_OF_SOME",
    "probe_chance": "timing.probes.schedule._CHANCE_OF",
    "late_wrong": "timing.probes.kinds._WRONG_EACH_TIME",
    "late_pieces": "reference.inputs.deferred.MOST_PIECES",
    "late_bytes": "reference.inputs.deferred.PIECE_BYTES",
    "snapshot_bytes": "device.output_snapshots._PIECE_BYTES",
    "fast_share": "timing.variance._FAST_SHARE",
    "fewest_fast": "timing.variance._FEWEST_FAST",
    "of_three": "judge.entry_verdict._OF_THREE_ATTEMPTS",
    "own_share": "attribution.kernel_ownership.OWN_SHARE",
    "library_share": "attribution.kernel_ownership.LIBRARY_SHARE",
    "traced_idle_us": "judge.kernel_trace._IDLE_US",
    "traced_idle_each_us": "judge.kernel_trace._IDLE_EACH_US",
    "traced_nobodys": "judge.kernel_trace._NOBODYS_SHARE",
    "glue_share": "attribution.code_places._GLUE_SHARE",
    "glue_us": "attribution.code_places._GLUE_US",
    "traced_tries": "judge.kernel_trace._TRIES",
    "usable": "reference.memory_plan._USABLE_SHARE",
    "wide": "reference.memory_plan._WIDE_SHARE",
    "frame_bytes": "protocol.frames.MAX_FRAME_BYTES",
    "scratch_bytes": "sandbox.mounts.SCRATCH_BYTES",
    "source_bytes": "model.candidate._MOST_BYTES",
    "read_files": "build.outcome._MOST_FILES",
    "read_bytes": "build.outcome._MOST_FILE_BYTES",
    "extensions": "build.outcome.MOST_EXTENSIONS",
    "extension_bytes": "build.outcome._MOST_EXTENSION_BYTES",
    "built_anew": "judge.device_run._MOST_BUILT_ANEW",
    "interpreted": "judge.references.MOST_ELEMENTS",
    "sanitized_size": "judge.sanitize._LEAST_SIZE",
}
# What `harness.model.device_limits` has for each kind of device, and there for a probe of each clock.
_OF_DEVICES = {
    "in_worker_us": "in_worker_below_us",
    "clock_share": "wall_share",
    "clock_us": "wall_us",
    "unvouched_share": "unvouched_share",
    "unvouched_us": "unvouched_us",
    "certain": "certain_times",
    "tail_share": "tail_share",
    "tail_us": "tail_us",
    "tail_blamed_us": "tail_blamed_us",
    "slowed_share": "slowed_share",
    "slowed_us": "slowed_us",
    "slowed_blamed_us": "slowed_blamed_us",
    "known_to": "known_to",
    "traced_least": "traced_least",
    "traced_most": "traced_most",
    "traced_slack_us": "traced_slack_us",
}
_OF_PROBES = {
    "probe_share": "share",
    "probe_us": "least_us",
    "probe_blamed_us": "blamed_us",
}

PAGE = """\
# Rules

Written by `docs/write_rules.py`, which takes every constant from the code; do not edit it by hand.

This page has the rules by which the judge decides. [verdicts.md](verdicts.md) says what each verdict means and what to
do. What was measured to set a constant, and what was tried and left, is in [design/](design/README.md).

## Theory of operation

{theory}

## Accuracy

**Truth.** The truth is the reference's `Model` in float64 on the same inputs. A model that casts inside itself runs
without its casts. A model that has no float64 is held against strict eager PyTorch, and the column `truth` says so.
Strict means that TF32 is off for cuBLAS and for cuDNN.

**Error.** The error of an element is |C − C64| / (u·D). The unit u is 2⁻²⁴, and 2⁻⁵³ for float64 outputs. D is the
scale:

- With `scale: abs_inputs` D is the reference on absolute inputs; for a product that is |A||B|.
- With `scale: row_max` D is the largest magnitude along the last dimension, or along as many as hold {row_elements}
  elements.
- Without `terms` no row has a D below {small_row} of the median row's.
- Where D is zero the element must equal the truth.

**Bounds**, in u. *Eager* is strict PyTorch's own error on the same inputs; `terms` is the length of the longest sum.

| case | largest error | root mean square |
|---|---|---|
| `terms` is given | max({factor:g}·eager + {offset:g}, {root:g}·√terms) | max({factor:g}·eager + {rms_offset:g}, {rms_root:g}·√terms + {rms_plus:g}) |
| … and the product is exact | {factor:g}·eager + {offset:g} | {factor:g}·eager + {rms_offset:g} |
| … and signs are random, with `abs_inputs` | {factor:g}·eager + {offset:g} | as in the first row |
| `terms` is not given | max({free_factor:g}·eager + {free_offset:g}, 4·S rms, 2·S max) | max({factor:g}·eager + {free_rms:g}, S rms + 2) |

- A class that the YAML opens adds {narrow_tf32:,.0f} u for `tf32` and `fp16`, {narrow_bf16:,.0f} u for `bf16`, and half
  of that to the root mean square.
- S is what other orders of the reference's own sums change. A chain counts up to {chain:,} terms, a product's up to
  {chain_product:,}.
- Without `terms` the root mean square counts from {row_elements} elements on.
- Where eager's own part is above {far_u:g} u, half of what TF32 inputs cost is the most, or a quarter more than eager
  itself.
- An output in which eager's root mean square is above {noise_rms_u:,.0f} u is rounding noise, and its problem ranks
  nothing.

**Integers and booleans** must be equal, but for ties and thresholds. An index is right where the value it points at is
the reference's, to within {edge_times:g} times what eager is off in that line. No index may come twice in a line. One
element in 256 may sit on the other side of a threshold, within as much.

**Inputs.** The reference's `get_inputs()` draws new inputs for each launch, under a seed from the operating system.
Products are also checked with random signs, with magnitudes from 2⁻{binades} to 2{binades_up}, with one-hot lines and
with an identity. Other problems have at most one further family, where the inputs as given could hide TF32: one-way
rounding, or random signs. All families are checked at the timed sizes and at every check size.

**Classes.** An error that some narrower precision explains is `imprecise`: `split` up to {split_u:,.0f} u over the
bound, then `tf32`, then `bf16`. What none explains is `incorrect`. Without an exact family an error from
{mixed_tf32_u:g} u on counts as `tf32`.

**Zeros and slow truths.** The judge leaves blocks of zeros out of its own float64 product where they are {zeros_out} or
more of the work. A truth is slow where it takes over {slow_truth_ms:g} ms, and over {longer:g} times as long as
eager. A timed output then passes within {near_eager:g} of its bounds around eager, where eager itself usually is
within as much. Any other meets the float64 truth, and so does one in {float64_least} to {float64_most} by lot: one in
as many as the truth takes eager's time.

**Form.** Number, type, device, shape and dtype come before any arithmetic. An output must be dense and no view of an
input. Its inputs must be what they were. The first {alone} calls at each size are made alone, on a GPU with a guard
behind their outputs. Another order of dimensions is allowed; the copy to the reference's order is then timed. The state
of `ModelNew` is compared by name, by digests that the worker finds, and a difference is the reason only where results
are wrong.

**References.** The judge calls each reference before it holds anything against it:

| the judge sees | what follows |
|---|---|
| `get_inputs` returns the same twice | its own seeds are passed over, then its file is run anew; else the note `same_inputs` |
| {same_draws} draws give one output, within {same_u:g} u | the note `same_output` |
| two calls differ, and two float64 calls by more than {random_u:g} u | refused: it is random |
| two calls differ, and two float64 calls do not (atomics) | the distance counts as eager's error |
| no float64, and two calls differ by more than an honest sum may | refused: it is random |
| `forward` moves the model's state | one more call; a candidate that is off by more than {state_share:.0%} of the way has `state_moved` false |
| it writes to inputs, returns one, is lazy, sparse or complex, or shapes follow values | refused in a sentence |

Rows of a problem with such a note, and rows whose `state_moved` is false, are judged and timed, but neither ranked nor
scored.

## Timing

**Cold.** On a GPU each launch finds {gpu_cache_times} × L2 written and as much read, and persisting lines reset. On a
CPU a buffer as large as the last-level cache, {cpu_cache_mib:g} MiB at most, is written, by the C library and no operator of
PyTorch's. Then the judge's own process takes the inputs out of every core's caches (x86-64), and opens the window.

**Gate.** A queue of launches waits on a word in host memory until it is full, so that launch overhead stays out of the
times. A queue that is not full after {gate_s:g} s is let go: its `forward` synchronises, or two calls are more than
about {stream_takes:,} kernels. The row then has `launch_hidden` false, and up to the first interim check it has
{ungated_budgets:g} times the seconds of the table below. `e2e_us` is one call with its overhead.

**Rounds.** A is the candidate in a worker; B is strict eager in the judge's process, on inputs drawn alike. A segment
is {segment_ms:g} ms of launches of one side, {segment_launches} at most. One lead-in launch before it is thrown away,
and one lead-in in {lead_in_one_of} is verified. Every timed output is verified. Rounds go A B B A, and each gives one
log-ratio, in which a segment counts as the mean of the middle half of its launches.

**Estimate.** The speedup is the {trim:.0%} trimmed mean of the rounds, with its Tukey–McLaughlin interval at
{confidence:.0%}. The error of {error:.0%} is shared equally between the interim checks.

| `--config` | stops at a half-width of | or after | interim checks after rounds (key `looks`) | workers | row budget |
|---|---|---|---|---|---|
{configs}

- These half-widths hold from 1 ms on. A shorter call may stop at its margin (`rigorous`: at half of it), or at the
  table's where that is more.
- At least {fewest_rounds} rounds are made. Below {short_us:g} µs no check comes before {short_share:.0%} of the seconds
  are spent.
- A call {far_slower:g} times as long as eager's is timed in {brief_rounds} calls, and so is one {slower:g} times as
  long whose row has no time for all rounds.
- A row ends after its budget, or after {row_times} times what eager's own row took, where that is more.
- A round in which the GPU slowed down for heat or its power supply is dropped for both sides. More dropped than kept is
  `unsure`.

**Margins.** FASTER: the whole interval lies above 1 + margin. SLOWER: below 1 − margin. SAME: inside. Else UNSURE. The
margin is {margins}. The control is eager against itself: no speedup is
FASTER or SLOWER within the factor by which the control's interval is off 1, up or down. What is timed in {brief_rounds}
calls is far beyond that.

**Short calls on a GPU.** What a process adds to each launch lasts as long as the process, and more rounds do not
average it out.

- A baseline below {in_worker_ms:g} ms is timed in the worker too, as the *in-worker baseline*. Where it agrees with the
  judge's own (to {apart_share:.0%} or {apart_us:g} µs), the speedup is over it, and the interval still reaches to what
  the judge's own says.
- Below {pooled_us:g} µs the speedup is over the *pooled baseline*, eager's mean over several processes
  (`baseline_mean_us`).
- The interval has {kernel_us:g} µs standard deviation for each kernel of a call, beside what the rounds scatter by.
- With several workers (`rigorous`) the interval is the wider of that within them and that between them.

**Device lock.** One run at a time times on a device. It holds the lock from the first thing timed to the last, not for
builds. A run gives up after {wait_h:g} h, or after `--wait SECONDS`.

**Limits.** The *speed of light* is the larger of useful bytes over measured copy bandwidth and useful operations over
the best rate. The precision class says which rate: for fp32 the fp32 units or a third of the 16-bit tensor rate. The
*floor* is the same at the GPU's fastest rate of any kind.

## Clock audit

A GPU's figures come first, a CPU's in brackets. Of two figures the larger counts.

| the judge checks | `unsure` from | `rejected` from |
|---|---|---|
| the time against the floor | – | below {floor_share:g} of it |
| its own clock less the worker's, against the control: more | {clock_us[cuda]:g} µs or {clock_share[cuda]:.0%} of the call ({clock_cpu_ms:g} ms or {clock_share[cpu]:.0%}) | {certain[cuda]:g} times that ({certain[cpu]:g} times) |
| … more, from {unvouched_us[cuda]:g} µs or {unvouched_share[cuda]:.0%} of the call on ({unvouched_us[cpu]:g} µs or {unvouched_share[cpu]:.0%}) | – (see `unvouched_us` below) | – |
| … less | {clock_us[cuda]:g} µs or {less_share:.0%} of the call, or {less_share:.0%} of its own steps | {certain[cuda]:g} times that (never) |
| … of the flush before the window, on a CPU | ({clock_cpu_ms:g} ms or {flush_share:.0%}, more or less) | (more: {certain[cpu]:g} times) |
| the report of a segment comes late | {tail_us[cuda]:g} µs or {tail_share[cuda]:.0%} of it ({tail_cpu_ms:g} ms or {tail_share[cpu]:.0%}) | {tail_blamed_ms:g} ms ({tail_blamed_cpu_ms:g} ms) or {certain[cuda]:g} times that ({certain[cpu]:g} times) |
| eager is slower beside the candidate than beside the control | {slowed_share[cuda]:.0%} or {slowed_us[cuda]:g} µs ({slowed_share[cpu]:.0%} or {slowed_us[cpu]:g} µs) | {certain[cuda]:g} times that ({certain[cpu]:g} times or {slowed_blamed_cpu_ms:g} ms), if eager is fast again once the candidate is gone |
| the interval is wide | ±{known_to[cuda]:.0%} on a GPU | – |
| a few launches are far faster than most | {fast_share:.0%} of them, {fewest_fast} at least, on a GPU | – |

**What is not vouched for counts.** The third row gives no verdict. Such a row has all that its call may take longer in the
column `unvouched_us`, with what either clock is not known to (99 %). The low end of its speedup, its word and its rank are
those of a call that takes so much longer. That clock begins as the judge opens the window. The harness's own steps after
a call count as the least that a baseline's took. On a CPU eager may be slower
beside the candidate by a quarter; the low end then reaches what it would be over eager's time beside the control.

**Probes** are segments that count for no ratio. Each comes unannounced before a segment of the candidate's. Each kind
comes in the first four rounds, any of them before one segment in {probe_chance} by lot, and one after the rounds.

| probe | what the judge does | what is a finding |
|---|---|---|
| flush | it checks that the cache was made cold, and takes a snapshot of {snapshot_mib:g} MiB of each output as the launch ends | the flush is not whole, or the output changed after its window: `rejected` |
| early read | inputs lie readable for twice the call's time before the window | calls are faster by {probe_share[cuda]:.0%} or {probe_us[cuda]:g} µs ({probe_share[cpu]:.0%} or {probe_cpu_ms:g} ms), or on a GPU the fastest eighth by {probe_some:.0%} |
| late input | up to {late_pieces} pieces of {late_bytes} bytes of one launch come with the window | the output is wrong {late_wrong} times, or that call is slower by as much |
| input value | one launch of a product has random signs | that call is slower by as much: `goes_by_values` |
| kernels | native code records what runs on a GPU | see [Attribution](#attribution) |

- A probe that finds something is made {probe_tries} times. All findings: `rejected`. {probe_often} of them: `unsure`.
  On a CPU less than {probe_blamed_cpu_ms:g} ms is `unsure` only.
- Calls that synchronise have wider limits: {probe_share[ungated]:.0%} or {probe_us[ungated]:g} µs are a finding,
  {probe_blamed_us[ungated]:g} µs are `rejected`. By the judge's own clock less than {ungated_ms:g} ms more is `unsure` only.
- On a CPU the judge's own clock rejects what three of four launches show. What fewer show is `unsure`.
- Some references cannot be queued ahead themselves, as a recurrent loop of thousands of kernels. The host's time is then
  in every row, and no row gains by it. Such a row's interval is as wide as it says, and is `ok`. A gain that a probe
  finds within {by_chance:g} times the middle half of the row's own times is chance. An eager that is slower beside the
  candidate, by half at most, widens the interval.
- What is `unsure` for the clocks, or was rejected beside a control that was timed once, is timed again beside a new
  control; {of_three} of 3 decide.

## Attribution

On a GPU native code of the harness's writes down what ran, in probes among the rounds that look like any segment. For
each kernel the first rule that applies counts:

1. A name that only ready-made libraries have is the library's, whatever else bears that name.
2. A name in the device code of the extensions that the build produced is the candidate's own, if PyTorch has none of
   that name.
3. A name that a library may well have given is the library's.
4. A name that the source defines (NVRTC, CuPy, Numba, CuTe DSL, TileLang, Triton with a cubin in its cache) is the
   candidate's own, if no installed package has a kernel of that name in its text, and Triton's form names no package's
   file.
5. What is left is unknown. Copies and fills are nobody's.

`custom` is {own_share:.0%} or more of the GPU time in own kernels, `library` is {library_share:.0%} or less, and
`mixed` lies between. {library_share:.0%} or more of nobody's is `unknown`. Of all recorded calls that which claims least
counts.

| a recorded call must | or else |
|---|---|
| be listed whole: numbered records, a kernel for each launching call and a call for each kernel, nothing dropped, the harness's own kernels in order | `unknown`, whatever other recordings show |
| have a right output | `unknown` |
| take what a timed call takes, to {traced_apart:.0%} and {traced_slack_us[cuda]:g} µs, and {longer_each_us:g} µs more for each kernel, in one of {traced_tries} segments at least | `unknown`; `rejected` where its kernels take longer in all of them |
| leave the GPU idle for {traced_idle_us:g} µs, {traced_idle_each_us:g} µs for each kernel and {traced_nobodys:.0%} of the call at most | `unknown` |
| have no other process of the candidate's on the GPU, then or in a timed round | `unknown` |

Where calls could not be queued ahead it may take {longer_each_ungated_us:g} µs more for each kernel, and what timed calls
differ by; the GPU may then be idle for as long as it is busy. A source that reaches into loaded modules, objects or
frames, names CUPTI, looks at its own process in /proc, or replaces functions of PyTorch's, is `unknown`.

*Proven:* a call that was recorded and is listed whole did this work, in this time, and timed calls take as long. *Not
proven:* who tells recorded calls from timed ones (by the host's time of a launch, say) may do other work in them; it
gains no more than the row above allows, since what it shows must be as fast. Machine code of the candidate's can write into
the records before the judge reads them.

On a CPU a watched call must take {traced_least[cpu]:g} to {traced_most[cpu]:g} times as long as a timed one, within
{watched_ms:g} ms, at one of {traced_tries} tries. The time in the extension's own functions is set against the time in PyTorch's operators. What an extension may
take from elsewhere is listed: memory, text, mathematics of single values, threads, Python's objects, and of PyTorch what
handles tensors. All extensions of a candidate count together. One other name makes it `unknown`, and the row says which;
so does code of a file that came since the candidate and is neither installed nor of its build. Operators count in
whatever thread they run.

In all launches the system notes now and then what instruction each of the worker's threads is at, and the judge reads
that from outside. What then lies in another file than the extension's, C's, its mathematics' or its threads' makes
`mixed` or `library` of `custom`: where it takes {library_share:.0%} of a core or more, for PyTorch and Python {glue_share:.0%} and {glue_us:g} µs,
beyond chance. Code of no installed file makes it `unknown`. *Proven:* whose file the machine code was that ran in timed
calls, in whatever thread and however it was called. *Not proven:* where that code came from before it was in the
extension's file. Where perf events are not allowed the row says that nobody looked. Details are in [design/attribution.md](design/attribution.md).

`--sanitize` runs one launch at the smallest check size of {sanitized_size} or more under compute-sanitizer. The first
finding makes the row `incorrect`.

## Isolation

- Frames are JSON of {frame_mib:g} MiB at most. Seeds, expected outputs and verdicts never leave the judge.
- Builders and workers have a process group, HOME and TMPDIR of their own, and a scrubbed environment. Limits: files of
  {file_gib:g} GiB, {processes:,} processes, 80 % of the machine's memory (with a cgroup).
- With bubblewrap or `unshare` they also have PID, mount, IPC and network namespaces of their own, a read-only file
  system, and an empty /tmp and /dev/shm of {scratch_gib:g} GiB. The strongest sandbox that passes a trial here is
  taken; the column `sandbox` names it.
- There they see the system, the interpreter with its packages, compilers, CUDA, their own candidate and its entry in the
  cache. Of the project, homes, /tmp and disks they see nothing else, and of the candidate's folder what bears no other
  candidate's name. Without mount namespaces `sandbox` says `neighbours readable`.
- A worker compiles nothing. What `forward` asks a compiler for, a builder makes, and a new worker begins: {built_anew}
  times at most.
- A source has at most {source_mib:g} MiB. A build reads at most {read_files:,} files or {read_mib:g} MiB, and makes at
  most {extensions} extensions or {extension_gib:g} GiB.
- A name that looks like a baseline's or another candidate's is refused (`build_failed`).
- At the end the judge kills every process that the candidate began, and the GPU must answer before the next one.
- Triton's interpreter, where there is no GPU, is given sizes of {interpreted:,} elements or fewer.

Details are in [design/isolation.md](design/isolation.md).

## Memory

The judge measures one call and plans what is alive at once. The first plan that fits in {usable:.0%} of the free memory
is taken, and `memory_step` names what was given up:

| `memory_step` | what is given up |
|---|---|
| `full` | nothing: up to {segment_launches} timed launches in a row |
| `fewer_launches` | launches in a row |
| `one_launch` | one timed launch after its lead-in; inputs are drawn again from their seeds; one outbox, so that lead-ins are not compared |
| `slices` | expected outputs are made and compared in slices of the batch |
| `host` | outputs wait in host memory while a float64 pass runs, and both processes give everything else back |

- A float64 pass is cut where it would take more than {wide:.1%} of the memory, and only where slices of inputs give
  slices of outputs.
- Without room the next step is taken and the row judged again. `out_of_memory` is a verdict after the last step alone.
- In the last step the judge adds at most three times inputs and outputs to what one eager call holds.
- `memory_gb: 24` in a settings file tries a smaller card. On a CPU a call that would not fit is refused before it is
  drawn.

Details are in [design/rounds.md](design/rounds.md#memory).
"""


def constants() -> dict[str, Any]:
    """Return every value that the page names, by the name it has there."""
    values = {name: _attribute(path) for name, path in _NAMED.items()}
    for name, of_limits in _OF_DEVICES.items():
        values[name] = {"cuda": getattr(CUDA, of_limits), "cpu": getattr(CPU, of_limits)}
    for name, of_probe in _OF_PROBES.items():
        values[name] = {
            probe.clock: getattr(probe, of_probe) for probe in (CUDA.probe, CUDA.ungated_probe, CPU.probe)
        }
    limits = default_limits()
    plain, sums = fp32_bounds(0, 0, 0, True), fp32_bounds(0, 0, 1e8, False)
    free = [bounds_without_terms(Spread(each, each), Spread(0, 0), None, 1000) for each in (0, 1)]
    return values | {
        "theory": inspect.cleandoc(harness.judge.__doc__ or "").partition("Theory of operation. ")[2],
        "offset": plain.max_u, "rms_offset": plain.rms_u, "factor": fp32_bounds(1, 1, 0, True).max_u - plain.max_u,
        "root": sums.max_u / 1e4, "rms_plus": fp32_bounds(0, 0, 0, False).rms_u,
        "rms_root": (sums.rms_u - fp32_bounds(0, 0, 0, False).rms_u) / 1e4,
        "free_offset": free[0].max_u, "free_factor": free[1].max_u - free[0].max_u, "free_rms": free[0].rms_u,
        "narrow_tf32": representation_u("tf32"), "narrow_bf16": representation_u("bf16"),
        "binades_up": str(values["binades"]).translate(_RAISED), "binades": str(values["binades"]).translate(_RAISED),
        "small_row": f"{values['small_row']:g}", "zeros_out": f"{1 - values['zeros_left']:.0%}",
        "alone": _attribute("judge.check._ALONE"), "slow_truth_ms": 1e3 * values["slow_truth_s"],
        "cpu_cache_mib": values["cpu_cache_bytes"] / 2**20, "error": 1 - values["confidence"],
        "configs": "\n".join(map(_config, ("quick", "default", "rigorous"))), "margins": _margins(values["margins"]),
        "in_worker_ms": values["in_worker_us"]["cuda"] / 1e3, "wait_h": values["wait_s"] / 3600,
        "clock_cpu_ms": values["clock_us"]["cpu"] / 1e3, "tail_cpu_ms": values["tail_us"]["cpu"] / 1e3,
        "tail_blamed_ms": values["tail_blamed_us"]["cuda"] / 1e3,
        "tail_blamed_cpu_ms": values["tail_blamed_us"]["cpu"] / 1e3, "probe_cpu_ms": values["probe_us"]["cpu"] / 1e3,
        "probe_blamed_cpu_ms": values["probe_blamed_us"]["cpu"] / 1e3, "ungated_ms": values["ungated_us"] / 1e3,
        "traced_apart": values["traced_most"]["cuda"] - 1, "watched_ms": values["traced_slack_us"]["cpu"] / 1e3,
        "slowed_blamed_cpu_ms": values["slowed_blamed_us"]["cpu"] / 1e3,
        "snapshot_mib": values["snapshot_bytes"] / 2**20,
        "frame_mib": values["frame_bytes"] / 2**20, "scratch_gib": values["scratch_bytes"] / 2**30,
        "source_mib": values["source_bytes"] / 2**20, "read_mib": values["read_bytes"] / 2**20,
        "extension_gib": values["extension_bytes"] / 2**30, "file_gib": (limits.file_bytes or 0) / 2**30,
        "processes": limits.processes,
    }


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _attribute(path: str) -> Any:
    """Return what `path` names below `harness`: a module's attribute, or an attribute of a class in it."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(["harness", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AttributeError(f"harness has no {path}")


def _config(name: str) -> str:
    settings = load_settings(name)
    checks = ", ".join(map(str, settings.interim_checks))
    return (
        f"| `{name}` | {settings.half_width * 100:g} % | {settings.budget_s:g} s | {checks} | {settings.workers} | "
        f"{settings.row_budget_s:g} s |"
    )


def _margins(margins: tuple[tuple[float, float], ...]) -> str:
    (long_us, least), (middle_us, middle), (_, most) = margins
    return f"{least * 100:g} % from {long_us / 1e3:g} ms, {middle * 100:g} % from {middle_us:g} µs, and {most * 100:g} % below"


def text() -> str:
    """Return the whole page."""
    page = re.sub(r"(?<=\d)%", " %", PAGE.format(**constants()))
    return "\n\n".join(_wrapped(block) for block in page.rstrip("\n").split("\n\n")) + "\n"


def _wrapped(block: str) -> str:
    """Return a paragraph or a list in lines of at most 120 characters; a table and a heading as they are."""
    if block.startswith(("|", "#")):
        return block
    items = re.split(r"\n(?=- |\d+\. )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()), 120, break_long_words=False, break_on_hyphens=False,
            subsequent_indent=re.match(r"(- |\d+\. )?", item).end() * " ",
        )
        for item in items
    )


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
