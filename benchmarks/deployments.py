"""What the same load is put on: one home on SQLite, or PostgreSQL, Redis and S3 with fronts behind a balancer."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.homes import BENCH, bench_folder, share_models, stack_on
from config.settings import SETTINGS, load_settings
from pipeline.features.indexing.usecases import compile_model
from tests.support.cluster import Cluster
from tests.support.stack import QUICK, Client, Stack, wait_until

PROCESSES = ("web", "worker", "scheduler")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many of what there are."""

    workers: int
    fronts: int

    def __str__(self) -> str:
        return f"{self.workers} worker{'s' * (self.workers > 1)}, {self.fronts} front{'s' * (self.fronts > 1)}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Something that runs: where clients come in, and the ids of its processes by part."""

    name: str
    port: int
    token: str
    parts: Mapping[str, list[int]]

    def client(self, workspace: str) -> Client:
        """Return a client of a workspace."""
        return Client(self.port, self.token, workspace)

    def cpu_seconds(self) -> dict[str, float]:
        """Return what each part has used, what its children used included."""
        return {part: sum(map(_used_by, pids)) for part, pids in self.parts.items()}

    def memory_mib(self) -> dict[str, float]:
        """Return the memory (PSS) of each part."""
        return {part: sum(map(_memory_of, pids)) / (1 << 20) for part, pids in self.parts.items()}


@contextlib.contextmanager
def one_home(shape: Shape) -> Iterator[Deployment]:
    """Run a home on SQLite."""
    with scratch() as place, stack_on(place / "home", WORKER_PROCESSES=str(shape.workers)) as stack:
        yield run_home(stack)


def run_home(stack: Stack) -> Deployment:
    """Start a home's processes, with an encoder that is compiled: where it never was, that takes minutes."""
    compile_model(load_settings(stack.environment))
    stack.start(*PROCESSES)
    stack.wait_for_encoder()
    token = (stack.home / "token").read_text(encoding="ascii").strip()
    parts = {name.replace("web", "front"): [process.pid] for name, process in stack.running.items()}
    return Deployment("SQLite", stack.port, token, parts)


@contextlib.contextmanager
def one_cluster(shape: Shape) -> Iterator[Deployment]:
    """Run fronts and workers on PostgreSQL, Redis and S3."""
    with scratch() as place, servers(place, shape) as cluster:
        yield run_cluster(cluster)


def servers(place: Path, shape: Shape, schedulers: int = 1) -> Cluster:
    """Return a cluster with the settings that a company has, not the impatient ones of the fault tests."""
    usual = {name: str(SETTINGS[name.lower()].default) for name in QUICK}
    counts = {"fronts": shape.fronts, "workers": shape.workers, "schedulers": schedulers}
    return Cluster(place / "cluster", share_models(), **counts, **usual)


def run_cluster(cluster: Cluster) -> Deployment:
    """Start a cluster's machines, with an encoder that is compiled."""
    fronts = cluster.list_fronts()
    compile_model(load_settings(fronts[0].environment))
    cluster.start()
    for front in fronts:
        front.wait_for_encoder()
    parts: dict[str, list[int]] = {}
    for name, part in cluster.parts.items():
        parts.setdefault(name.partition("-")[0], []).append(part.pid)
    return Deployment("PostgreSQL, Redis, S3", cluster.port, cluster.token, parts)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder beside the shared models for the length of a block."""
    share_models()
    with tempfile.TemporaryDirectory(prefix="scale-", dir=bench_folder(BENCH)) as place:
        (Path(place) / "models").symlink_to(share_models(), target_is_directory=True)
        yield Path(place)


def wait_until_digested(deployment: Deployment, names: list[str], deadline_s: float) -> None:
    """Wait until nothing is pending in some workspaces."""
    with contextlib.ExitStack() as closing:
        clients = [closing.enter_context(contextlib.closing(deployment.client(name))) for name in names]

        def drained() -> bool:
            return not any(sum(client.call("GET", "/v1/queue").body["pending"].values()) for client in clients)

        wait_until("everything is digested", drained, deadline_s)


def _used_by(pid: int) -> float:
    used = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            used += sum(one.cpu_times()[:4])
    return used


def _memory_of(pid: int) -> float:
    size = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            size += one.memory_full_info().pss
    return size
