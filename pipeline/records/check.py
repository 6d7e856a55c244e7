"""What a diagnostic check found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found, and what helps; `repair` does it and says what was done."""

    check: str
    state: Literal["ok", "warn", "fail"]
    says: str
    hint: str | None = None
    repair: Callable[[], str] | None = None
