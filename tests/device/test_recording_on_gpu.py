"""The recorder with the true CUPTI: launches of every sort are listed with their calls, and a recording is as the events say."""

from __future__ import annotations

import ctypes
import statistics
import time

import pytest
import torch

from harness.attribution.recording import Unproven, windows
from harness.build.toolchain import find_host_compiler
from harness.device.kernel_recorder import KernelRecorder
from harness.protocol import cuda_driver, markers, nvrtc
from harness.protocol.arena import Arena
from harness.protocol.clocks import gpu_stopwatch
from harness.protocol.recorder import CPP, open_recorder

pytestmark = pytest.mark.gpu
STEPS = ("await_word", "apply_mask", "write_over", "add_up")
SOURCE = "".join(f'extern "C" __global__ void {name}() {{}}\n' for name in (*STEPS, *markers.PLAIN, "mine"))


class Worker:
    """This process, with its recorder and a loop of launches as a worker's; `kernels` are empty ones by their names."""

    def __init__(self):
        torch.cuda.init()
        torch.ones(8, device="cuda").sum().item()
        library = gpu_stopwatch.compiled(find_host_compiler(), CPP.read_text())
        arena = Arena.create()
        self.judge = KernelRecorder(arena, library)
        place = self.judge.command()["recording"]
        self.markers = markers.drawn()
        properties = torch.cuda.get_device_properties(0)
        cubin = markers.renamed(nvrtc.compile_cubin(SOURCE, properties.major, properties.minor), self.markers)
        self.kernels = {name: cuda_driver.Kernel(cubin, name, 1, 32, ()) for name in (*STEPS, *self.markers, "mine")}
        self.costs_us = {"without": self.cost_us()}
        began = time.monotonic()
        open_recorder(gpu_stopwatch.loaded(library), arena.descriptor, **place)
        self.open_s = time.monotonic() - began

    def cost_us(self):
        """What an empty kernel takes the GPU and the host, of a thousand one after the other."""
        taken = []
        for _ in range(7):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(20_000_000)  # so that the host is far ahead
            began = time.perf_counter()
            start.record()
            for _ in range(500):
                self.kernels["mine"].launch(0)
            host_us = 1e6 * (time.perf_counter() - began) / 500
            stop.record()
            stop.synchronize()
            taken.append((start.elapsed_time(stop) * 1e3 / 500, host_us))
        return tuple(round(statistics.median(each), 3) for each in zip(*taken))

    def launch(self, forward):
        for name in (*STEPS, self.markers.opens):
            self.kernels[name].launch(0)
        forward()
        self.kernels[self.markers.closes].launch(0)

    def recorded(self, *forwards):
        self.judge.begin()
        for forward in forwards:
            self.launch(forward)
        torch.cuda.synchronize()
        return windows(self.judge.end(), self.markers, len(forwards))


@pytest.fixture(scope="module")
def worker():
    return Worker()


@pytest.fixture
def square():
    return torch.rand(2048, 2048, device="cuda")


def names(window):
    return [span.name for span in window.spans]


def test_launches_by_pytorch_by_the_driver_and_fills_are_listed_in_their_windows(worker, square):
    product, own, filled = worker.recorded(
        lambda: square @ square, lambda: worker.kernels["mine"].launch(0),
        lambda: cuda_driver.fill_bytes(0, square.data_ptr(), 7, 4096),
    )
    assert names(product) and names(product)[0] != "mine" and product.spans[0].time_us > 50
    assert (names(own), names(filled)) == (["mine"], ["Memset"])


def test_copies_to_and_from_the_host_are_told_from_others(worker, square):
    on_host, pinned = torch.rand(2048, 2048), torch.rand(2048, 2048).pin_memory()
    windows = worker.recorded(
        lambda: square.cpu(), lambda: square.copy_(on_host), lambda: square.copy_(pinned, non_blocking=True),
        lambda: square.clone(),
    )
    to_host, from_host, from_pinned, within = ({*names(window)} for window in windows)
    assert (to_host, from_host, from_pinned) == ({"Memcpy DtoH"}, {"Memcpy HtoD"}, {"Memcpy HtoD"})
    assert within == {"Memcpy"}


def test_a_graph_that_was_captured_before_lists_its_kernels(worker, square):
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        square @ square
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        made = square @ square + square
    (window,) = worker.recorded(graph.replay)
    assert len(names(window)) >= 2 and made.shape == square.shape
    assert sum(span.time_us for span in window.spans) > 50


def test_a_kernel_on_a_joined_side_stream_is_in_the_window(worker, square):
    side = torch.cuda.Stream()

    def forward():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            square @ square
        torch.cuda.current_stream().wait_stream(side)

    assert len(names(worker.recorded(forward)[0])) >= 1


def test_a_window_is_as_long_as_events_say(worker, square):
    recorded = [window.open_us for window in worker.recorded(*[lambda: square @ square] * 9)[1:]]
    torch.cuda._sleep(10_000_000)  # queued behind this, no event waits for a busy host
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(9)]
    for start, stop in events:
        start.record()
        square @ square
        stop.record()
    torch.cuda.synchronize()
    timed = [1e3 * start.elapsed_time(stop) for start, stop in events]
    print(f"recorded {statistics.median(recorded):.1f} µs, events {statistics.median(timed[1:]):.1f} µs")
    assert statistics.median(recorded) == pytest.approx(statistics.median(timed[1:]), rel=0.1, abs=12)


def test_what_the_worker_launches_unrecorded_is_in_no_listing(worker, square):
    square @ square
    assert names(worker.recorded(lambda: worker.kernels["mine"].launch(0))[0]) == ["mine"]


def test_thousands_of_kernels_are_all_listed(worker):
    (window,) = worker.recorded(lambda: [worker.kernels["mine"].launch(0) for _ in range(5000)])
    assert len(window.spans) == 5000


def cupti():
    path = next(line.split()[-1] for line in open("/proc/self/maps") if "/libcupti.so" in line)
    return ctypes.CDLL(path)


def test_a_kernel_that_is_hidden_from_cupti_makes_it_no_recording(worker, square):
    def forward():
        cupti().cuptiActivityDisable(10)
        square @ square
        cupti().cuptiActivityEnable(10)
        worker.kernels["mine"].launch(0)

    with pytest.raises(Unproven, match="not in the listing"):
        worker.recorded(forward)


def test_nobody_else_can_subscribe(worker):
    other = ctypes.c_void_p()
    assert cupti().cuptiSubscribe(ctypes.byref(other), None, None) != 0
    assert names(worker.recorded(lambda: worker.kernels["mine"].launch(0))[0]) == ["mine"]


def test_it_says_how_long_it_takes(worker):
    began = time.monotonic()
    worker.judge.begin()
    begun = time.monotonic()
    worker.judge.end()
    ended = time.monotonic()
    worker.costs_us["open"] = worker.cost_us()
    worker.judge.begin()
    worker.costs_us["recording"] = worker.cost_us()
    worker.judge.end()
    print("a kernel's time on the GPU and on the host (µs):", worker.costs_us)
    took = {"open": worker.open_s, "begin": begun - began, "end": ended - begun}
    print({name: f"{1e3 * seconds:.1f} ms" for name, seconds in took.items()})
    assert took["begin"] < 1 and took["end"] < 1
