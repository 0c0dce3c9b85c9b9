"""The connection to a Ray cluster: whether there is one, and the devices of its nodes."""

from __future__ import annotations

import functools
import importlib.util
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from harness.model.errors import InputError, NothingToRun
from harness.runs.cluster.actor import RefereeActor
from harness.runs.cluster.builds import built
from harness.runs.cluster.parcel import Carried

_REACH_S = 10.0
_TOKEN_HINT = "something does, so it may want a token: bring its ~/.ray/auth_token here, and set RAY_AUTH_MODE=token"
HOW_TO_INSTALL = "Ray is not installed here. Type pip install '.[ray]'"


@dataclass(frozen=True)
class Seat:
    """One device of a node: the GPU with this number among the node's, or its CPU. `model` is the accelerator type that Ray
    knows the node by, None where it knows none. `host` is what it is called in words, which no other node was called.
    """

    node: str
    host: str = field(compare=False)
    number: int
    model: str | None = None

    @property
    def label(self) -> str:
        return f"{self.host}:{self.number}"


@dataclass(frozen=True)
class Link:
    """A cluster that this process is connected to, and which of its devices are wanted: "cuda" or "cpu", and of which `model`.

    `actor` is what stands beside a device, `build` what makes a build; simulations have their own. `unwanted` are references
    to builds that were begun and given up.
    """

    kind: str = "cuda"
    model: str | None = None
    actor: type = RefereeActor
    build: Callable[..., tuple[str, Carried]] = built
    unwanted: set[Any] = field(default_factory=set, compare=False)

    def seats(self) -> list[Seat]:
        """Return the devices of the nodes that are alive now."""
        import ray

        seats: list[Seat] = []
        nodes = ray.nodes()
        hosts = [each["NodeManagerHostname"] for each in nodes]  # of those that are gone too
        for node in (each for each in nodes if each["Alive"]):
            resources = node["Resources"]
            models = [name.partition(":")[2] for name in resources if name.startswith("accelerator_type:")]
            model = models[0] if models else None
            if self.model is not None and model != self.model:
                continue
            # A head that was started with --num-cpus=0 is to run nothing.
            count = int(resources.get("GPU", 0)) if self.kind == "cuda" else int(resources.get("CPU", 0) > 0)
            host = node["NodeManagerHostname"]
            if hosts.count(host) > 1:
                host = f"{host}/{node['NodeID'][:4]}"
            seats += [Seat(node["NodeID"], host, number, model) for number in range(count)]
        return seats

    @property
    def models(self) -> list[str]:
        """Return the accelerator types of its devices, "unknown" where Ray knows none."""
        return sorted({each.model or "unknown" for each in self.seats()}) if self.kind == "cuda" else ["cpu"]

    def place(self, seat: Seat, program: str) -> Any:
        """Have an actor be placed at `seat` as soon as Ray has its device free; returns its handle at once."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        of_model = {f"accelerator_type:{seat.model}": 0.001} if seat.model and self.kind == "cuda" else {}
        return _remote(self.actor).options(
            num_cpus=0, num_gpus=int(self.kind == "cuda"), resources=of_model, max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(seat.node, soft=False),
        ).remote(program, "cuda:0" if self.kind == "cuda" else "cpu")


def check_one_model(models: Sequence[str]) -> None:
    """Raise InputError where there are several: what is compared with each other is measured on one."""
    if len(models) > 1:
        hint = f"Choose one with --accelerator {models[0]}"
        raise InputError(f"the cluster has GPUs of several models: {', '.join(models)}", hint=hint)


@functools.lru_cache
def _remote(actor: type) -> Any:
    """Two groups of one thread each: what it is told arrives in order, while a call waits for what it says."""
    import ray

    return ray.remote(concurrency_groups={"said": 1, "told": 1})(actor)


def _reach(address: str) -> None:
    """Raise OSError where nothing answers at "host:port", and ValueError for what is no such address: Ray itself would try
    for many minutes.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in address:
        raise ValueError("an address is auto, or HOST:PORT of the head node, as ray start --head prints it")
    socket.create_connection((host, int(port)), _REACH_S).close()


def _address_of(address: str) -> str:
    """Return "host:port" for "auto", as Ray finds it (RAY_ADDRESS, or what was started here last); "auto" where it finds none.

    Ray has no public call for that.
    """
    if address == "auto":
        with suppress(Exception):
            from ray._private import services

            return services.canonicalize_bootstrap_address("auto", None) or address
    return address


@contextmanager
def connected(address: str, device: str = "auto", model: str | None = None) -> Iterator[Link]:
    """Be connected to the cluster at `address`, "auto" for the one of this machine, until the end.

    `device` is "auto" (GPUs where the cluster has any) or "cpu". A program that is connected already stays so. Raises
    NothingToRun where Ray is not installed, no cluster answers, or it has no such device.
    """
    if importlib.util.find_spec("ray") is None:
        raise NothingToRun(HOW_TO_INSTALL)
    import ray

    own = not ray.is_initialized()
    if own:
        head = _address_of(address)
        hint = "start one with: ray start --head" if head == "auto" else "is its head running, and its port open?"
        try:
            if head != "auto":  # else ray.init says at once that there is none
                _reach(head)
                hint = _TOKEN_HINT
            ray.init(address=address, log_to_driver=False, logging_level="error", namespace="kernel-referee")
        except (OSError, ValueError, RuntimeError, ray.exceptions.AuthenticationError) as error:
            where = f"'{address}'" if head == address else f"{head}, which is '{address}'"
            words = " ".join(str(error).split())[:200]
            raise NothingToRun(f"no Ray cluster answers at {where} ({words}); {hint}") from None
    try:
        link = Link("cpu" if device == "cpu" else "cuda", model)
        if device == "auto" and not link.seats():
            raise NothingToRun(
                f"the Ray cluster has no GPU{f' of model {model}' if model else ''}. Ray counts those that it finds as a node "
                "starts; --device cpu judges on a CPU of each node"
            )
        yield link
    finally:
        if own:
            ray.shutdown()
