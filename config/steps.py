"""Named steps of changes that consist of several steps. Tests lose the power at each (docs/concepts/reliability.md)."""

from collections.abc import Callable

# Only tests observe steps.
observers: list[Callable[[str], object]] = []


def reached(step: str) -> None:
    """Note that a step of a change is complete."""
    for observer in observers:
        observer(step)
