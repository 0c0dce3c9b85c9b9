"""The recorder as it is compiled, with the judge at one end and at the other a CUPTI that follows a script."""

from __future__ import annotations

import ctypes
import subprocess
import time
from pathlib import Path

import pytest
import torch

from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Unproven, windows
from harness.build.toolchain import find_host_compiler
from harness.device import kernel_recorder as judges
from harness.device.kernel_recorder import KernelRecorder
from harness.protocol import recorder
from harness.protocol.arena import Arena
from harness.protocol.clocks import gpu_stopwatch
from harness.protocol.markers import Markers
from harness.protocol.recorder import CPP, FROM_HOST, TO_HOST, open_recorder

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(torch.version.cuda is not None, reason="PyTorch has loaded a true CUPTI here"),
]
MARKERS = Markers("k0", "k1")
STEPS = ("await_word", "apply_mask", "write_over", "add_up", "step_aside", MARKERS.opens)
KERNELS, COPIES, FILLS = 10, 1, 2  # CUPTI's numbers


@pytest.fixture(scope="module")
def library():
    return gpu_stopwatch.compiled(find_host_compiler(), CPP.read_text())


@pytest.fixture(scope="module")
def loaded_cupti(tmp_path_factory):
    """Loaded as PyTorch loads the true one, under its name."""
    made = tmp_path_factory.mktemp("cupti") / "libcupti.so.13"
    source = Path(__file__).with_name("fake_cupti.cpp")
    subprocess.run([find_host_compiler(), "-O1", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return ctypes.CDLL(str(made))


@pytest.fixture
def cupti(loaded_cupti):
    loaded_cupti.fake_reset()
    yield loaded_cupti
    loaded_cupti.fake_reset()


class Worker:
    """A process with a recorder; its clock goes on by 10 µs with each kernel."""

    def __init__(self, cupti, library, *, opens=True):
        self.cupti, self.arena, self.now_ns = cupti, Arena.create(), 1_000_000
        self.judge = KernelRecorder(self.arena, library)
        place = self.judge.command()["recording"]
        if opens:
            open_recorder(gpu_stopwatch.loaded(library), self.arena.descriptor, **place)
            # What CUPTI does at first is done before a candidate is there that calls it from another thread.
            self.judge.begin()
            self.judge.end()

    def kernel(self, name, *, by="fake_launch", rest=(0,)):
        begin, self.now_ns = self.now_ns, self.now_ns + 10_000
        getattr(self.cupti, by)(name.encode(), ctypes.c_uint64(begin), ctypes.c_uint64(begin + 10_000), *rest)

    def launch(self, *forward):
        """One as the worker's loop makes it, around what `forward` does."""
        for name in STEPS:
            self.kernel(name)
        for each in forward:
            each() if callable(each) else self.kernel(each)
        self.kernel(MARKERS.closes)
        self.cupti.fake_fill(ctypes.c_uint64(self.now_ns), ctypes.c_uint64(self.now_ns + 2_000))

    def recorded(self, *launches):
        self.judge.begin()
        for forward in launches:
            self.launch(*forward)
        return self.judge.end()


@pytest.fixture
def worker(cupti, library):
    return Worker(cupti, library)


def names(window):
    return [span.name for span in window.spans]


def test_what_ran_in_each_window_is_seen_with_its_times(worker):
    found = windows(worker.recorded(["tile"], ["_Z4tilePf", "mask"]), MARKERS, 2)
    assert [names(each) for each in found] == [["tile"], ["tile(float*)", "mask"]]
    assert [(span.start_us, span.time_us) for span in found[1].spans] == [(0.0, 10.0), (10.0, 10.0)]
    assert [each.open_us for each in found] == [10.0, 20.0]


def test_a_launch_that_nobody_asked_about_is_not_recorded(worker):
    worker.launch("before")
    worker.recorded(["tile"])
    worker.launch("between")
    assert names(windows(worker.recorded(["tile"]), MARKERS, 1)[0]) == ["tile"]


def test_a_graphs_kernels_belong_to_its_one_call_and_a_launch_that_fails_to_none(worker):
    graph = lambda: worker.kernel("node", by="fake_graph", rest=())  # noqa: E731
    fails = lambda: worker.kernel("never", rest=(1,))  # noqa: E731
    (window,) = windows(worker.recorded([graph, fails, "tile"]), MARKERS, 1)
    assert names(window) == ["node", "node", "tile"]


def test_a_kernel_may_bear_the_number_of_the_drivers_call_within_the_runtimes(worker):
    worker.cupti.fake_bear_inner()
    assert names(windows(worker.recorded(["tile"]), MARKERS, 1)[0]) == ["tile"]


def test_more_than_one_of_cuptis_buffers_is_handed_over_whole(worker):
    (window,) = windows(worker.recorded(["tile"] * 20_000), MARKERS, 1)
    assert len(window.spans) == 20_000


def refused(recording, count=1):
    with pytest.raises(Unproven) as caught:
        windows(recording, MARKERS, count)
    return str(caught.value)


def hidden(worker, switch):
    """A forward that switches something off around a library's kernel and on again afterwards."""

    def off():
        switch(worker.cupti, on=False)

    def on():
        switch(worker.cupti, on=True)

    return [off, "sgemm", on, "tile"]


def activities(cupti, on):
    for kind in (KERNELS, COPIES, FILLS):
        (cupti.cuptiActivityEnable if on else cupti.cuptiActivityDisable)(kind)


def callbacks(cupti, on):
    for domain, number in ((1, 307), (2, 211)):
        cupti.cuptiEnableCallback(int(on), None, domain, number)


def test_a_kernel_around_which_recording_was_switched_off_is_missed(worker):
    assert refused(worker.recorded(hidden(worker, activities))) == "1 calls launched kernels that are not in the listing"


def test_a_kernel_around_which_callbacks_were_switched_off_is_one_too_many(worker):
    assert refused(worker.recorded(hidden(worker, callbacks))) == "kernels are in the listing that no call launched"


def test_a_subscription_that_was_ended_is_seen_even_where_it_was_the_candidates_to_take(worker):
    first = worker.recorded([lambda: worker.cupti.cuptiUnsubscribe(None), "sgemm"])
    assert refused(first) == "the harness's subscription to CUPTI was ended"
    assert refused(worker.recorded(["tile"])) == "the harness's subscription to CUPTI was ended", "and is not trusted again"


def test_a_cupti_that_was_finalized_is_seen(worker):
    assert "subscription" in refused(worker.recorded([lambda: worker.cupti.cuptiFinalize(), "sgemm"]))


def test_records_that_cupti_dropped_are_no_listing(worker):
    recording = worker.recorded([lambda: worker.cupti.fake_lose(ctypes.c_size_t(3)), "tile"])
    assert refused(recording) == "3 records had no room"


def test_what_was_dropped_before_is_no_loss(worker):
    worker.cupti.fake_lose(ctypes.c_size_t(3))
    assert len(windows(worker.recorded(["tile"]), MARKERS, 1)) == 1


def test_records_that_have_no_room_are_no_listing(cupti, library, monkeypatch):
    monkeypatch.setattr(judges, "REGION_BYTES", 8192 + recorder.MODULES_BYTES)
    monkeypatch.setattr(judges, "RECORDS_BYTES", 8192)
    assert refused(Worker(cupti, library).recorded(["tile"] * 200)).endswith("records had no room")


def test_others_that_take_the_records_are_put_away_when_a_recording_begins(worker):
    worker.cupti.cuptiActivityRegisterCallbacks(None, None)  # as PyTorch's profiler does
    assert len(windows(worker.recorded(["tile"]), MARKERS, 1)) == 1


def test_who_subscribed_first_keeps_the_recorder_from_it(cupti, library):
    mine = ctypes.c_void_p()
    assert cupti.cuptiSubscribe(ctypes.byref(mine), cupti.cuptiFinalize, None) == 0
    assert refused(Worker(cupti, library).recorded(["tile"])) == "CUPTI has another subscriber already (code 39)"


def test_what_cupti_refuses_is_said_with_its_code(worker):
    worker.cupti.fake_refuse(35)
    assert refused(worker.recorded(["tile"])) == "CUPTI refused to record kernels (code 35)"


def test_a_recorder_that_was_not_opened_or_not_built_is_said_at_once(cupti, library):
    began = time.monotonic()
    assert refused(Worker(cupti, library, opens=False).recorded(["tile"])) == "the recorder was not opened"
    unbuilt = KernelRecorder(Arena.create(), None)
    assert unbuilt.command()["recorder"] is None
    unbuilt.begin()
    assert refused(unbuilt.end()) == "there is no C++ compiler here to build the recorder with"
    assert time.monotonic() - began < 1


def test_a_recorder_whose_thread_is_gone_is_waited_for_once(worker, monkeypatch):
    monkeypatch.setattr(judges, "_PATIENCE_S", 0.05)
    worker.judge._reached = ctypes.c_uint32()  # which nobody writes
    worker.judge._patience_s = 0.05
    assert refused(worker.recorded(["tile"])) == "the recorder does not answer"
    began = time.monotonic()
    worker.recorded(["tile"])
    assert time.monotonic() - began < 0.05


def test_a_launch_that_failed_leaves_a_recording_open_and_the_next_is_its_own(worker):
    worker.judge.begin()
    worker.launch("lost")
    assert names(windows(worker.recorded(["tile"]), MARKERS, 1)[0]) == ["tile"]


def test_a_fresh_worker_begins_with_a_clean_page(cupti, library):
    worker = Worker(cupti, library)
    worker.cupti.cuptiUnsubscribe(None)
    refused(worker.recorded(["tile"]))
    worker.judge.command()
    assert worker.judge._head()[2:5] == (0, 0, 0)


def test_its_types_are_those_of_cupti(tmp_path):
    """Where its header is installed."""
    folder = next((each for each in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include")
                   if Path(each, "cupti.h").is_file()), None)
    if folder is None:
        pytest.skip("there is no cupti.h here")
    same = {
        "KernelActivity": ("CUpti_ActivityKernel9", {
            "start": "start", "end": "end", "stream": "streamId", "grid": "gridX", "block": "blockX",
            "correlation": "correlationId", "name": "name", "graph": "graphId"}),
        "MemoryActivity": ("CUpti_ActivityMemset4", {
            "start": "start", "end": "end", "stream": "streamId", "correlation": "correlationId"}),
        "PeerCopyActivity": ("CUpti_ActivityMemcpyPtoP4", {"correlation": "correlationId"}),
        "CallbackFacts": ("CUpti_CallbackData", {
            "site": "callbackSite", "returned": "functionReturnValue", "correlation": "correlationId"}),
        "ResourceFacts": ("CUpti_ResourceData", {"module": "resourceDescriptor"}),
        "ModuleFacts": ("CUpti_ModuleResourceData", {"bytes": "cubinSize", "cubin": "pCubin"}),
    }
    lines = [
        f"static_assert(offsetof({ours}, {field}) == offsetof({theirs}, {other}), \"{field}\");"
        for ours, (theirs, fields) in same.items() for field, other in fields.items()
    ]
    lines += [
        "static_assert(offsetof(MemoryActivity, correlation) == offsetof(CUpti_ActivityMemcpy6, correlationId), \"copy\");",
        "static_assert(offsetof(MemoryActivity, way) == offsetof(CUpti_ActivityMemcpy6, copyKind), \"way\");",
        "static_assert(offsetof(PeerCopyActivity, way) == offsetof(CUpti_ActivityMemcpyPtoP4, copyKind), \"way\");",
        f"static_assert({FROM_HOST[0]} == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD && {FROM_HOST[1]} == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, \"from\");",
        f"static_assert({TO_HOST[0]} == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH && {TO_HOST[1]} == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, \"to\");",
        "static_assert(kConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, \"kernels\");",
        "static_assert(kMemcpy == CUPTI_ACTIVITY_KIND_MEMCPY && kMemset == CUPTI_ACTIVITY_KIND_MEMSET, \"memory\");",
        "static_assert(kMemcpyPeer == CUPTI_ACTIVITY_KIND_MEMCPY2, \"peers\");",
        "static_assert(kDriver == CUPTI_CB_DOMAIN_DRIVER_API && kRuntime == CUPTI_CB_DOMAIN_RUNTIME_API, \"domains\");",
        "static_assert(kResource == CUPTI_CB_DOMAIN_RESOURCE && kModuleLoaded == CUPTI_CBID_RESOURCE_MODULE_LOADED, \"modules\");",
        "static_assert(kForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, \"flush\");",
        "static_assert(kInvalidParameter == CUPTI_ERROR_INVALID_PARAMETER, \"error\");",
    ]
    source = tmp_path / "same.cpp"
    source.write_text(f'#include <cstddef>\n#include <cupti.h>\n#include "{CPP}"\n' + "\n".join(lines))
    made = subprocess.run(
        [find_host_compiler(), "-fsyntax-only", "-I", folder, str(source)], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr


def test_the_two_halves_agree_on_the_places():
    text = CPP.read_text()
    assert f"kModuleRoom = {recorder.MODULES_BYTES >> 20} << 20" in text
    assert f"sizeof(Head) == {recorder.HEAD.size}" in text and f"sizeof(Record) == {recorder.RECORD.size}" in text


def test_the_code_of_each_module_is_kept_as_it_was_loaded_whether_anything_is_recorded_or_not(worker, cupti):
    cupti.fake_module(b"first", ctypes.c_size_t(5))
    worker.recorded(["tile"])
    cupti.fake_module(b"sixteen letters.", ctypes.c_size_t(16))
    assert worker.judge.loaded_code() == LoadedCode([b"first", b"sixteen letters."], is_whole=True)
    assert worker.recorded(["tile"]).fault is None


def test_of_a_module_without_room_it_is_known_that_it_is_missing(worker, cupti):
    large = bytes(recorder.MODULES_BYTES)
    cupti.fake_module(large, ctypes.c_size_t(len(large)))
    cupti.fake_module(b"small", ctypes.c_size_t(5))
    assert worker.judge.loaded_code() == LoadedCode([b"small"], is_whole=False)


def test_a_worker_whose_recorder_was_not_opened_shows_no_code(cupti, library):
    worker = Worker(cupti, library, opens=False)
    worker.judge.begin()
    assert not worker.judge.loaded_code().is_whole
