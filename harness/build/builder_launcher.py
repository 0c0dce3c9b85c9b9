"""Starting builders: what one is told, sees and may use, and how it ended."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.build import parallel_front_ends, stand_in_headers
from harness.build.answers import check_answer, check_question
from harness.build.builder_progress import BuildLimits
from harness.build.device_answers import DeviceFacts, card_of
from harness.build.flags import unknown_flags
from harness.build.outcome import BUILT, COMPILED, IMPORTED, MOST_EXTENSIONS, SOURCE, Compiled, Ending
from harness.build.toolchain import COMPILE_ONLY_ARCH, Toolchain, cuda_home
from harness.model.candidate import Candidate
from harness.model.paths import REPOSITORY
from harness.protocol.clocks.idle_threads import SPIN
from harness.protocol.frames import BadFrame, ChannelClosed, FrameTimeout
from harness.sandbox import processes
from harness.sandbox.environment import scrubbed
from harness.sandbox.limits import default_limits
from harness.sandbox.prestart import PRELOADED
from harness.sandbox.sandbox_choice import Sandbox
from harness.sandbox.spawn import Child, spawn

# Each with the stand-in for PyTorch's headers, and without.
MOST_CALLS = 2 * MOST_EXTENSIONS


@dataclass(frozen=True)
class Builders:
    """What all builders of a run have in common.

    A build may take `timeout_s`, and in it the import `import_timeout_s`, compiling not counted. `init` says how
    `ModelNew` is constructed: {"reference": path, "sizes": [{...}, …]}, or empty. `device` is the run's GPU, if any.
    Of the folders in `hidden` a builder sees only what is its candidate's. `gently` is for where another run is timing.
    """

    toolchain: Toolchain
    timeout_s: float
    import_timeout_s: float
    sandbox: Sandbox | None
    init: Mapping[str, Any]
    device: DeviceFacts | None = None
    hidden: Sequence[Path] = ()
    gently: bool = False

    def run(
        self, candidate: Candidate, private: Path, jobs: int, begun: Callable[[Child], None] = lambda child: None,
        calls: Sequence[Mapping[str, Any]] = (),
    ) -> Ending:
        """Let a child with `jobs` compilers at once build the candidate below `private`, or the `calls` that a worker
        of its has asked for; it is gone when this returns. `begun` is called with each child, and may kill it.

        That child runs the candidate's code, and compiles nothing that another can: each call is compiled by a child of
        its own, in a folder that the first may read alone.
        """
        own, place = private / IMPORTED, private / COMPILED
        for folder in (own / BUILT, place):
            folder.mkdir(parents=True)
        source = candidate.file_in(private / SOURCE).resolve()
        copied = [source.parent] if candidate.is_frozen else []  # neither child may write there
        request = self._request(candidate, source, own, calls)
        limits = BuildLimits(self.timeout_s, self.import_timeout_s, time.monotonic)
        compiled: list[Compiled] = []

        def compile_one(frame: Mapping[str, Any]) -> Ending:
            """Have one call compiled, by a child that runs none of the candidate's code."""
            # Of what is asked in the candidate's process the call alone counts: not where compilers or folders are.
            call, private = frame["compile"], place / str(len(compiled))
            flags = unknown_flags(call, call["state"]["common"])
            slim = bool(frame["slim_headers"]) and stand_in_headers.is_wanted()
            if len(compiled) == MOST_CALLS:
                raise BadFrame(f"it asks for more than {MOST_CALLS} calls")
            (private / BUILT).mkdir(parents=True)
            compiling = self._spawn(candidate, private, jobs, [*copied, own.resolve()])
            begun(compiling)
            folder = str((private / BUILT).resolve())
            wanted = {"compile": call, "slim_headers": slim, "folder": folder, "unsettled": str(own.resolve())}
            ending = self._carry_out(compiling, {**request, **wanted}, limits)
            if ending.answer is not None:
                compiled.append(Compiled(ending.answer, flags))
            begun(child)
            return ending

        child = self._spawn(candidate, own, jobs, [*copied, place])
        begun(child)
        return replace(self._carry_out(child, request, limits, compile_one), compiled=tuple(compiled))

    def _spawn(self, candidate: Candidate, private: Path, jobs: int, seen: Sequence[Path]) -> Child:
        readable, hidden = self._places(candidate)
        return spawn(
            "harness.build.builder", environment=self.environment(jobs), private=private, readable=[*readable, *seen],
            hidden=hidden, repository=REPOSITORY, limits=default_limits(gpu=False), sandbox=self.sandbox, preloaded=PRELOADED,
        )

    def _carry_out(
        self, child: Child, request: Mapping[str, Any], limits: BuildLimits,
        compile_one: Callable[[Mapping[str, Any]], Ending] | None = None,
    ) -> Ending:
        """Have `child` do what `request` says, and end it. What it asks to have compiled `compile_one` does; where that
        ends without an answer, all of it has.
        """
        answer, problem, spent_s = None, "", 0.0
        try:
            child.channel.send({**request, "own_scratch": child.sandbox.read_only_repository}, timeout_s=60)
            while answer is None:
                frame = child.channel.receive(limits.left_s)
                if compile_one is not None and "compile" in frame:
                    check_question(frame)
                    ending = compile_one(frame)
                    if ending.answer is None:
                        return ending
                    child.channel.send(dict(ending.answer), timeout_s=60)
                elif not limits.heed(frame) and (compile_one is not None or "extensions" in frame):
                    check_answer(frame)
                    answer = frame  # of what runs none of the candidate's code a word that counts no more is none
        except FrameTimeout:
            problem, spent_s = "import timeout" if limits.is_import_over else "timeout", processes.spent_s(child.pid)
        except BadFrame as error:
            problem = f"protocol: {error}"
        except ChannelClosed:
            child.wait(10)
            problem = "died"
        finally:
            code, death = child.poll(), child.death()
            child.kill()
        return Ending(
            answer, problem, code, death, child.ran_out_of_memory, child.output(), self.import_timeout_s, spent_s=spent_s
        )

    def _request(
        self, candidate: Candidate, source: Path, private: Path, calls: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        return {
            "candidate": str(source), "unsettled": None, "folder": str((private / BUILT).resolve()),
            "nvcc": self.toolchain.nvcc_path, "sms": list(self.toolchain.sms), "device": self._answers_for(candidate),
            "without_gpu": self.toolchain.compile_only, "slim_headers": stand_in_headers.is_wanted(),
            "interpreted": stand_in_gpu_of(candidate, self.toolchain) is not None,
            "reference": self.init.get("reference"), "sizes": [dict(each) for each in self.init.get("sizes", [])],
            "calls": [dict(call) for call in calls] or None, "gently": self.gently,
        }

    def _answers_for(self, candidate: Candidate) -> dict[str, Any] | None:
        """The properties of the GPU that it may ask for; None where its questions decide nothing of what is built."""
        if self.toolchain.compile_only:  # it is to be known of any whether it goes where a GPU is
            card = card_of(self.toolchain.arch)
            return stand_in_gpu_of(candidate, self.toolchain) or (card.properties() if card else None)
        builds = candidate.language in ("cuda", "cpp") and self.toolchain.nvcc_path is not None
        return self.device.properties() if builds and self.device is not None else None

    def _places(self, candidate: Candidate) -> tuple[list[Path], list[Path]]:
        """What a builder has to see, wherever it lies, and the folders of which it is to see nothing else."""
        nvcc, reference, places = self.toolchain.nvcc_path, self.init.get("reference"), candidate.beside()
        readable, hidden = list(places.own), [*self.hidden, *places.folders]
        if reference:  # whose `get_init_inputs` says what ModelNew is constructed with
            readable, hidden = [*readable, Path(reference)], [*hidden, Path(reference).parent]
        return [*readable, *([Path(nvcc), Path(cuda_home(nvcc))] if nvcc else [])], hidden

    def environment(self, jobs: int) -> dict[str, str]:
        """A builder's, with `jobs` compilers at once."""
        extra = {
            "CUDA_VISIBLE_DEVICES": "", "MAX_JOBS": str(jobs),
            "CCACHE_DISABLE": "1",  # what was compiled some other time no assembler tells of
            # As in a worker, so that both can be forked from one process.
            **{name: os.environ[name] for name in SPIN if name in os.environ},
            "TORCH_CUDA_ARCH_LIST": self.toolchain.arch,
            # torch starts ninja by name, and ninja may have come as a wheel.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        }
        if not os.environ.get("CXX") and shutil.which("c++") is None and shutil.which("g++"):
            extra["CXX"] = "g++"  # PyTorch asks for c++ alone
        if self.toolchain.nvcc_path and not self.toolchain.compile_only:
            home = extra["CUDA_HOME"] = cuda_home(self.toolchain.nvcc_path)
            if stand_in_headers.is_wanted():  # else a build is to be what torch itself makes of it
                command = parallel_front_ends.command_for(os.path.join(home, "bin", "nvcc"))
                extra["PYTORCH_NVCC"] = command.replace("$", "$$")  # in a file of ninja's two stand for one
        return scrubbed(os.environ, extra)


def stand_in_gpu_of(candidate: Candidate, toolchain: Toolchain) -> dict[str, Any] | None:
    """The properties of the GPU that Triton's interpreter stands in for; None where it does not run `candidate`."""
    if candidate.language != "triton" or not toolchain.compile_only:
        return None
    return (card_of(toolchain.arch) or card_of(COMPILE_ONLY_ARCH)).properties()
