"""PyTorch and its GPUs, tried out: `python -m harness.cli.diagnosis.gpu` prints its findings as JSON, one a line.

The trial is the real thing: a backend, a stream held back and let go, and a worker that maps the judge's memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.diagnosis.host import MISSING, NOTE, OK, Finding, bytes_text
from harness.model.paths import IS_INSTALLED, REPOSITORY, python_of

if TYPE_CHECKING:
    from harness.device.identity import Telemetry

_TRIAL_LIMIT_S = 180
_ANSWER_LIMIT_S = 90.0
_RELEASE_LIMIT_S = 5.0
_TORCH_HINT = "pip install torch" if IS_INSTALLED else "pip install -c constraints.txt -e ."
_NO_IPC_HINT = "GPU memory is shared by CUDA IPC, which WSL2 and some containers do not have"
_NO_COMPILER_HINT = "without a C++ compiler calls are timed by torch.cuda.Event: apt install g++, or set CXX"
_NO_GPU_HINT = "a GPU run needs an NVIDIA driver and a PyTorch built for CUDA"


def examine() -> list[Finding]:
    """The findings of a child process; what it did not live to say is a finding of its own. Never raises."""
    try:
        ran = subprocess.run(python_of(__name__), cwd=REPOSITORY, capture_output=True, text=True, errors="replace",
                             timeout=_TRIAL_LIMIT_S, check=False)
        printed, ending = ran.stdout, f"ended with status {ran.returncode}" if ran.returncode else None
        last = (ran.stderr.strip().splitlines() or [""])[-1]
    except subprocess.TimeoutExpired as expired:
        printed, last = _text(expired.stdout), ""
        ending = f"did not end within {_TRIAL_LIMIT_S} s"
    trial_findings = [Finding(**json.loads(line)) for line in printed.splitlines() if line.startswith('{"name"')]
    if ending is not None:
        name = "GPU trial" if trial_findings else "PyTorch"
        detail = f": {last[:300]}" if last else ""
        hint = None if trial_findings else _TORCH_HINT
        trial_findings.append(Finding(name, MISSING, f"looking at it {ending}{detail}", hint))
    return trial_findings


def main() -> None:
    for finding in findings():
        print(json.dumps(finding.to_json()), flush=True)
    # A stream that was never let go would keep an ordinary exit waiting.
    os._exit(0)


def findings() -> Iterator[Finding]:
    """PyTorch, then each GPU it shows with what NVML and the trial say of it."""
    try:
        import torch
    except ImportError as error:
        yield Finding("PyTorch", MISSING, f"cannot be imported: {error}", _TORCH_HINT)
        return
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
    yield Finding("PyTorch", OK, f"{torch.__version__}, {built}")

    from harness.device.choice import why_no_gpu
    from harness.device.cuda import cuda_is_there
    from harness.device.identity import cpu_name

    yield Finding("CPU", OK, f"{cpu_name()}, {torch.get_num_threads()} threads")
    if not cuda_is_there():
        yield Finding("GPU", MISSING, f"{why_no_gpu()}; problems run on the CPU, at their cpu sizes", _NO_GPU_HINT)
        return
    for index in range(torch.cuda.device_count()):
        yield from _gpu_findings(index)


def _gpu_findings(index: int) -> Iterator[Finding]:
    import torch

    from harness.device.nvml import Nvml

    properties = torch.cuda.get_device_properties(index)
    label = f"cuda:{index}"
    memory, cache = bytes_text(properties.total_memory), bytes_text(properties.L2_cache_size)
    cores = f"{properties.multi_processor_count} SMs, {memory}, {cache} of L2"
    yield Finding(label, OK, f"{properties.name}, sm_{properties.major}{properties.minor}, {cores}")
    nvml = Nvml(str(properties.uuid))
    if nvml.present:
        yield Finding(f"{label} NVML", OK, f"driver {nvml.driver()}{_reading_text(nvml.telemetry(set()))}")
    else:
        text = "not available: no clocks, temperatures or throttle reasons, and heat is not noticed"
        yield Finding(f"{label} NVML", NOTE, text, "pip install nvidia-ml-py")
    yield from _trials_alone(index, label, str(properties.uuid))


def _reading_text(reading: Telemetry) -> str:
    """What NVML gives here, each with a comma before it; what it refuses is named, since a run goes without."""
    parts = {"SM clock": reading.sm_mhz, "power": reading.watts, "temperature": reading.celsius}
    units = {"SM clock": "MHz", "power": "W", "temperature": "°C"}
    seen = [f"{value:.0f} {units[name]}" for name, value in parts.items() if value is not None]
    if reading.throttle is not None:
        seen.append(f"throttle: {reading.throttle or 'none'}")
    missing = [name for name, value in {**parts, "throttle reasons": reading.throttle}.items() if value is None]
    text = "".join(f", {each}" for each in seen)
    return text + (f"; it does not give {', '.join(missing)}" if missing else "")


def _trials_alone(index: int, label: str, uuid: str) -> Iterator[Finding]:
    """Try the GPU out, unless a run is timing on it that a trial would disturb."""
    from harness.device.lock import device_lock

    try:
        lock = device_lock(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        if not lock.take():
            hint = "ask again when it has ended"
            yield Finding(f"{label} trial", NOTE, "not tried out: another run is timing on it", hint)
            return
    except OSError as error:
        yield Finding(f"{label} lock", MISSING, f"its lock cannot be taken: {error}", "delete the file it names")
        return
    try:
        yield from _trial_findings(index, label)
    finally:
        lock.release()


def _trial_findings(index: int, label: str) -> Iterator[Finding]:
    backend: Any = None

    def open_backend() -> str:
        nonlocal backend
        from harness.device.cuda import CudaBackend

        backend = CudaBackend(index)
        return "PyTorch's NVRTC compiles for it, and host memory maps into it"

    yield _tried(f"{label} opens", open_backend, None)
    if backend is None:
        return
    hint = "the driver must offer cuStreamWriteValue32 and mapped host memory; a newer one may"
    yield _tried(f"{label} held streams", lambda: _gate_and_release(backend), hint)
    timers: list[str] = []
    yield _tried(f"{label} CUDA IPC", lambda: _share_with_worker(backend, timers.append), _NO_IPC_HINT)
    if timers:
        yield _stopwatch_finding(label, timers[0])


def _tried(name: str, trial: Callable[[], str], hint: str | None) -> Finding:
    try:
        return Finding(name, OK, trial())
    except Exception as error:
        message = (str(error).strip().splitlines() or [""])[0]
        return Finding(name, MISSING, f"{type(error).__name__}: {message}"[:400], hint)


def _stopwatch_finding(label: str, timer: str) -> Finding:
    from harness.protocol.clocks.gpu_stopwatch import NativeEvents

    if timer == NativeEvents.name:
        return Finding(f"{label} stopwatch", OK, f"{timer}: a worker has the one that the host compiler builds")
    text = f"{timer}: the native one could not be built, or a worker could not load it"
    return Finding(f"{label} stopwatch", NOTE, text, _NO_COMPILER_HINT)


def _gate_and_release(backend: Any) -> str:
    """Hold a stream on a word of host memory and let it go. Raises RuntimeError when it will not be held or let go."""
    import torch

    from harness.protocol import cuda_driver, gate_kernel, nvrtc
    from harness.protocol.arena import FLAGS_BYTES, GO_BYTE, TURN_BYTE, Arena

    arena = Arena.create()
    flags = arena.flags()
    words = cuda_driver.map_host(flags.address, FLAGS_BYTES)
    passed = torch.cuda.Event()
    cubin = nvrtc.compile_cubin(gate_kernel.SOURCE, *torch.cuda.get_device_capability(backend.torch_device))
    gate_kernel.Waiter(cubin, words).wait(0, GO_BYTE, 1)
    cuda_driver.stream_write(0, words + TURN_BYTE, 7)
    passed.record(torch.cuda.default_stream(backend.torch_device))
    time.sleep(0.02)
    early = passed.query()
    flags.let_go(1)
    deadline = time.monotonic() + _RELEASE_LIMIT_S
    while not passed.query():
        if time.monotonic() > deadline:
            raise RuntimeError(f"a held stream was not let go within {_RELEASE_LIMIT_S:g} s")
    backend.synchronize()
    turn = flags.turn
    cuda_driver.unmap_host(flags.address)
    if early:
        raise RuntimeError("a stream that was to wait did not")
    if turn != 7:
        raise RuntimeError(f"a stream was to write 7 into host memory and left {turn}")
    return "a stream waits for host memory, goes on when told, and writes back"


def _share_with_worker(backend: Any, tell_timer: Callable[[str], None]) -> str:
    """Let a worker behind the sandbox open this process's memory, and tell its stopwatch. Raises RuntimeError."""
    from harness.launch.worker_launcher import WorkerLauncher
    from harness.protocol.layout import REGION_BYTES
    from harness.sandbox.sandbox_choice import strongest_sandbox

    with tempfile.TemporaryDirectory(prefix="kernel-referee-doctor-") as warm:
        starter = WorkerLauncher(backend, strongest_sandbox(), Path(warm))
        child = starter.start()
        try:
            _answer(child, "hello")
            child.channel.send(backend.prepare_command(), 5.0)
            tell_timer(_answer(child, "prepared")["timer"])
            child.channel.send(backend.open(1, REGION_BYTES, REGION_BYTES), 5.0)
            _answer(child, "opened")
        finally:
            child.kill()
            starter.close()
    return "a worker behind the sandbox opens the judge's memory"


def _answer(child: Any, expected: str) -> dict[str, Any]:
    from harness.protocol.frames import ChannelClosed

    try:
        reply = child.channel.receive(_ANSWER_LIMIT_S)
    except ChannelClosed:
        child.wait(2.0)
        last = (child.output().strip().splitlines() or [""])[-1]
        raise RuntimeError(f"the worker {child.death()}{f': {last}' if last else ''}") from None
    if expected not in reply:
        raise RuntimeError(f"the worker answered {str(reply)[:200]}")
    return reply


def _text(printed: str | bytes | None) -> str:
    return printed.decode(errors="replace") if isinstance(printed, bytes) else printed or ""


if __name__ == "__main__":
    main()
