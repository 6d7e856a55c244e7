"""Play all days, and report by topic."""

import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.ordinary_day.judge import Failure, Judge
from tests.integration.ordinary_day.machine import Machine
from tests.integration.ordinary_day.player import Player
from tests.integration.ordinary_day.steps import Step, read_steps
from tests.support.clock import ShiftedClock


@dataclass(frozen=True, slots=True)
class PlayedDays:
    """The steps that were played, and the expectations that were not met."""

    steps: Sequence[Step]
    failures: Sequence[Failure]

    def of_topic(self, topic: int) -> list[Failure]:
        """List the failures of a topic's steps."""
        return [failure for failure in self.failures if failure.step.topic == topic]


Follower = Callable[[Step, Sequence[Failure]], None]


def play_days(
    folder: Path, models: Path, until: int | None = None, follow: Follower = lambda _step, _failures: None
) -> PlayedDays:
    """Play the steps in a folder, on a stack of its own; `follow` is called after each step with what it got wrong."""
    steps = [step for step in read_steps() if until is None or step.step <= until]
    machine = Machine(folder, models, ShiftedClock(folder))
    player = Player(machine)
    judge = Judge(player)
    failures: list[Failure] = []
    try:
        player.begin(steps[0])
        for step in steps:
            found = _play(player, judge, step)
            failures += found
            follow(step, found)
    finally:
        machine.close()
    return PlayedDays(steps, failures)


def _play(player: Player, judge: Judge, step: Step) -> list[Failure]:
    try:
        return judge.judge(step, player.play(step))
    except (AssertionError, OSError, sqlite3.Error, subprocess.SubprocessError, ValueError) as error:
        return [Failure(step, f"the step broke off: {error!r}")]


def print_report(days: PlayedDays) -> str:
    """Print each failure by topic, then the counts; return the text."""
    lines = []
    for topic in sorted({step.topic for step in days.steps}):
        lines += [f"## Topic {topic}"] * bool(days.of_topic(topic))
        lines += [line for failure in days.of_topic(topic) for line in describe(failure)]
    lines += ["", *_table(days)]
    text = "\n".join(lines) + "\n"
    print(text)
    return text


def describe(failure: Failure) -> list[str]:
    """Return a failure as lines: the step, what is wrong, why that matters, and what was shown."""
    step = failure.step
    shown = failure.shown.strip().replace("\n", "\n      | ")
    lines = [f"step {step.step} day {step.day} {step.describe()}", f"    {failure.what}", f"    why: {step.why}"]
    return [*lines, f"      | {shown}"] if shown else lines


def _table(days: PlayedDays) -> list[str]:
    failed = {failure.step.step for failure in days.failures}
    steps = Counter(step.topic for step in days.steps)
    bad = Counter(step.topic for step in days.steps if step.step in failed)
    rows = [f"{topic:>5} {count:>6} {bad[topic]:>7}" for topic, count in sorted(steps.items())]
    return ["topic  steps  failed", *rows, f"  all {len(days.steps):>6} {len(failed):>7}"]
