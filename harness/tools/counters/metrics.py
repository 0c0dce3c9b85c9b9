"""Which counters are asked for, and what a figure made of them is called; pure.

The names are those of Nsight Compute's metrics since compute capability 7.0. One that a GPU does not know comes back
empty and leaves its figure out.
"""

from __future__ import annotations

DURATION = "gpu__time_duration.sum"
CYCLES = "sm__cycles_elapsed.max"
DRAM_PERCENT = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_BYTES = "dram__bytes.sum"
L2_PERCENT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L2_BYTES = "lts__t_bytes.sum"
L2_HITS = "lts__t_sector_hit_rate.pct"
TENSOR_PERCENT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
FMA_PERCENT = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
ISSUE_PERCENT = "smsp__issue_active.avg.pct_of_peak_sustained_active"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
MOST_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
REGISTERS = "launch__registers_per_thread"
# Beside these the driver keeps 1 KB of each block for itself.
SHARED_STATIC, SHARED_DYNAMIC = "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"
GRID, BLOCK, WAVES = "launch__grid_size", "launch__block_size", "launch__waves_per_multiprocessor"
# What keeps further blocks off a multiprocessor: the smallest of these counts of blocks.
LIMITS = {
    "launch__occupancy_limit_registers": "registers", "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "warps", "launch__occupancy_limit_blocks": "blocks",
}
CONFLICTS_LOAD = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
CONFLICTS_STORE = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
WAVEFRONTS_LOAD = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
WAVEFRONTS_STORE = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
SECTORS_LOAD = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
# How long a warp waits, in cycles for each instruction that it issues, by what it waits for.
_STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
)
STALLS = {f"smsp__average_warps_issue_stalled_{each}_per_issue_active.ratio": each for each in _STALLS}

ASKED_FOR = (
    DURATION, CYCLES, DRAM_PERCENT, DRAM_BYTES, L2_PERCENT, L2_BYTES, L2_HITS, TENSOR_PERCENT, FMA_PERCENT,
    ISSUE_PERCENT, OCCUPANCY, MOST_OCCUPANCY, REGISTERS, SHARED_STATIC, SHARED_DYNAMIC, GRID, BLOCK, WAVES, *LIMITS,
    CONFLICTS_LOAD, CONFLICTS_STORE, WAVEFRONTS_LOAD, WAVEFRONTS_STORE, SECTORS_LOAD, *STALLS,
)
