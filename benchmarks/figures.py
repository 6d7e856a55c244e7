"""Figures, their aims and bare limits, and the table that shows them."""

import json
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a number of requests took, in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float

    def __str__(self) -> str:
        return f"p50 {self.p50:6.2f}  p95 {self.p95:6.2f}  p99 {self.p99:6.2f}  max {self.longest:6.1f} ms"


def latency(milliseconds: Sequence[float]) -> Latency:
    """Sum up requests."""
    ordered = sorted(milliseconds)

    def share(part: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 3)

    return Latency(len(ordered), round(statistics.median(ordered), 3), share(0.95), share(0.99), round(ordered[-1], 3))


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure should be at most, or at least."""

    name: str
    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Tell whether a figure meets this aim."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{self.name} {'≥' if self.at_least else '≤'} {self.bound:g}".strip()


@dataclass(frozen=True, slots=True)
class Limit:
    """The least work that the same run measured, as the unit of another figure: its name and its value."""

    name: str
    value: float

    def ratio(self, value: float) -> float:
        """Return how many times the limit a figure is."""
        return value / self.value

    def compare(self, value: float) -> str:
        """Return a figure as a multiple of the limit."""
        return f"{self.ratio(value):.2f} × {self.name} ({self.value:.4g})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    name: str
    figure: str
    aims: tuple[tuple[Aim, float], ...] = ()
    ratio: str = ""

    def __str__(self) -> str:
        aims = "  ".join(f"{'✓' if aim.met(value) else '✗'} {aim}" for aim, value in self.aims)
        ratio = f"{self.ratio}  " if self.ratio else ""
        return f"  {self.name:<46} {self.figure:<58} {ratio}{aims}".rstrip()


class Report:
    """Rows for a person, printed as they come, and the same as JSON for a program."""

    def __init__(self, show: Callable[[str], None] = print) -> None:
        self._show = show
        self.data: dict[str, Any] = {"cores": os.cpu_count(), "load_before": [round(x, 2) for x in os.getloadavg()]}
        self._section = ""

    def section(self, title: str) -> None:
        """Begin a table."""
        self._section = title
        self._show(f"\n{title}")

    def row(self, name: str, figure: str, *aims: tuple[Aim, float], against: tuple[Limit, float] | None = None) -> None:
        """Add a line; `against` is the bare limit and the number to compare with it, which the JSON keeps too."""
        ratio = ""
        if against is not None:
            limit, value = against
            ratio = limit.compare(value)
            kept = {"value": value, "limit": limit.value, "of": limit.name, "ratio": round(limit.ratio(value), 4)}
            self.keep("ratios", self._section, name, value=kept)
        self._show(str(Row(name, figure, aims, ratio)))

    def latency(self, name: str, found: Latency, limit: Limit | None = None, **bounds: float) -> None:
        """Add a line of latencies, its p50 against a limit; `p50=5` is the aim of a p50 of at most 5 ms."""
        aims = tuple((Aim(part, bound), getattr(found, part)) for part, bound in bounds.items())
        against = None if limit is None else (limit, found.p50)
        self.row(f"{name}, {found.count}", str(found), *aims, against=against)

    def keep(self, *path: str, value: object) -> None:
        """Keep a figure for the JSON under a path of names."""
        place = self.data
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = asdict(value) if isinstance(value, Latency) else value

    def write(self, file: Path | None) -> None:
        """Write the JSON where it is wanted."""
        if file is not None:
            file.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
