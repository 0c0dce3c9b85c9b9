"""`python -I parallel_front_ends.py NVCC ARGUMENTS…`: what this nvcc does for one source and one architecture, its two
front ends at the same time.

nvcc reads a source twice, for the host and for the device, one after the other, and most of both is headers. It tells
its steps with --dryrun; those are run here as they are. Only the name of the module, which the host's front end makes
and the device's reads, is made beforehand. Whatever is not exactly as expected is left to nvcc itself.
Standard library only: it starts as often as nvcc does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MARK = "#$ "
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)")
_FILTERED = re.compile(r"-- Filter Dependencies -- > (.+)")
_MAKES_MODULE_ID = "--gen_module_id_file "
_MODULE_ID_FILE = re.compile(r'--module_id_file_name "([^"]+)"')
_SOURCE = re.compile(r'--orig_src_file_name "([^"]+)"')
_OUT = re.compile(r' -o "([^"]+)"')
_ARCHITECTURE = re.compile(r" --?(?:arch|gpu-name)[ =](sm_\w+)")
_RELOCATABLE = re.compile(r"--?(?:rdc|dc|relocatable-device-code|device-c)\b")
_MORE_ARGUMENTS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_OF_DEVICE = ("cicc", "ptxas", "fatbinary")


@dataclass(frozen=True)
class Steps:
    """The commands of one compilation, for a shell: two rows that touch none of each other's files, then the last one.
    `dependencies` is the makefile's rule that is asked for, if it is; each row leaves its part of it behind it.
    """

    environment: Mapping[str, str]
    host: Sequence[str]
    device: Sequence[str]
    last: str
    module_id_file: str
    dependencies: str | None = None

    @property
    def parts(self) -> tuple[str, str]:
        return f"{self.module_id_file}.host.d", f"{self.module_id_file}.device.d"


def command_for(nvcc: str) -> str:
    """What to call in place of `nvcc`, for a shell."""
    return shlex.join([sys.executable, "-I", os.path.abspath(__file__), nvcc])


def read_steps(dryrun: str, object_file: str) -> Steps | None:
    """What `nvcc --dryrun` told, or None unless it is one source for one architecture, in the steps known here."""
    environment, commands, dependencies = {}, [], None
    for line in dryrun.splitlines():
        if not line.startswith(_MARK):
            return None
        step = line.removeprefix(_MARK).strip()
        assigned, filtered = _ASSIGNED.fullmatch(step), _FILTERED.fullmatch(step)
        if assigned and not commands:
            environment[assigned[1]] = assigned[2]
        elif filtered:
            dependencies = filtered[1]
        elif not step.startswith("rm "):
            commands.append(step)
    by_kind: dict[str, list[str]] = {}
    for command in commands:
        by_kind.setdefault(_kind(command), []).append(command)
    expected = {"preprocess": 2, "cudafe++": 1, **dict.fromkeys(_OF_DEVICE, 1), "compile": 1}
    if {kind: len(group) for kind, group in by_kind.items()} != expected:
        return None
    front_end, last = by_kind["cudafe++"][0], by_kind["compile"][0]
    ids = {name for command in (front_end, *by_kind["cicc"]) for name in _MODULE_ID_FILE.findall(command)}
    made = {(_OUT.findall(command) or [""])[-1]: command for command in by_kind["preprocess"]}
    of_host = [name for name in made if name and front_end.endswith(f'"{name}"')]
    whole = len(ids) == len(of_host) == 1 and len(made) == 2 and _MAKES_MODULE_ID in front_end
    if not whole or last != commands[-1]:
        return None
    host = [made.pop(of_host[0]), front_end.replace(_MAKES_MODULE_ID, "")]
    device = [*made.values(), *(by_kind[tool][0] for tool in _OF_DEVICE)]
    steps = Steps(environment, host, device, last, ids.pop(), dependencies)
    if dependencies is not None:
        for row, part in zip((host, device), steps.parts):
            row[0] += f" -MD -MF {shlex.quote(part)} -MT {shlex.quote(object_file)}"
    return steps


def _kind(command: str) -> str:
    if " -E " in command:
        return "preprocess"
    return "compile" if " -c " in command else os.path.basename(command.split(maxsplit=1)[0].strip('"'))


def compile_with(nvcc: str, arguments: Sequence[str]) -> tuple[int, bytes] | None:
    """Compile; the exit code and what the steps said, or None where nvcc itself has to. Raises OSError."""
    if "-c" not in arguments or "-o" not in arguments[:-1]:
        return None
    # With code that is linked on the device, names of modules have to differ by more than is known here.
    also = " ".join(os.environ.get(name, "") for name in _MORE_ARGUMENTS).split()
    if any(_RELOCATABLE.match(each) for each in (*arguments, *also)):
        return None
    object_file = arguments[arguments.index("-o") + 1]
    place = tempfile.mkdtemp(prefix="side_by_side_")
    try:
        own = {**os.environ, "TMPDIR": place}
        dryrun = subprocess.run([nvcc, *arguments, "--dryrun"], env=own, capture_output=True, check=False)
        steps = read_steps(os.fsdecode(dryrun.stderr), object_file) if dryrun.returncode == 0 else None
        if steps is None or not steps.module_id_file.startswith(f"{place}/"):
            return None
        Path(steps.module_id_file).write_text(_module_id(steps, arguments))
        code, output = _carried_out(steps, object_file)
        # A compiler that was killed, or could not be started, says nothing of the source.
        return None if code and b"error" not in output else (code, output)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _carried_out(steps: Steps, object_file: str) -> tuple[int, bytes]:
    with ThreadPoolExecutor(2) as pool:
        host, device = pool.map(lambda row: _run(row, steps.environment), (steps.host, steps.device))
    if host[0]:  # nvcc would not have come to the device's row
        return host
    output = host[1] + device[1]
    if device[0]:
        return device[0], output
    _keep_cubin(steps, object_file)
    if steps.dependencies is not None:
        first, second = (Path(part).read_text(errors="surrogateescape") for part in steps.parts)
        rule = f"{first.rstrip()} \\\n{second.partition(': ')[2]}"
        Path(steps.dependencies).write_text(rule, errors="surrogateescape")
    code, last = _run([steps.last], steps.environment)
    return code, output + last


def _keep_cubin(steps: Steps, object_file: str) -> None:
    """Leave the machine code beside the object, in which it is packed: it says of constant memory what ptxas does not."""
    (ptxas,) = (command for command in steps.device if _kind(command) == "ptxas")
    made, architecture = _OUT.findall(ptxas), _ARCHITECTURE.search(ptxas)
    if made and architecture:
        with suppress(OSError):
            shutil.copyfile(made[-1], f"{object_file}.{architecture[1]}.cubin")


def _run(commands: Sequence[str], assigned: Mapping[str, str]) -> tuple[int, bytes]:
    """The exit code of the first that fails, or 0, and what they said up to there."""
    output, environment, pipe = b"", {**os.environ, **assigned}, subprocess.PIPE
    for command in commands:
        ran = subprocess.run(command, shell=True, env=environment, stdout=pipe, stderr=subprocess.STDOUT, check=False)
        output += ran.stdout
        if ran.returncode:
            return ran.returncode, output
    return 0, output


def _module_id(steps: Steps, arguments: Sequence[str]) -> str:
    """A name in the form of nvcc's own, of the source's name, the command and the place where it is given."""
    digest = hashlib.sha256("\0".join([os.getcwd(), *arguments]).encode(errors="surrogateescape")).hexdigest()
    source = next(iter(_SOURCE.findall(steps.host[-1])), "source")
    name = re.sub(r"\W", "_", os.path.basename(source), flags=re.ASCII)
    return f"_{digest[:8]}_{len(name)}_{name}_{digest[8:16]}"


def main() -> None:
    nvcc, *arguments = sys.argv[1:]
    came = None
    with suppress(OSError):  # a full disk, say: nvcc has its own words for it
        came = compile_with(nvcc, arguments)
    if came is None:
        os.execvp(nvcc, [nvcc, *arguments])
    sys.stdout.buffer.write(came[1])
    sys.stdout.buffer.flush()
    sys.exit(came[0])


if __name__ == "__main__":
    main()
