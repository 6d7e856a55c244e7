"""What nights will make of a memory that nobody uses, by the rules of decay and of the archive."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.jobs.aging.archive import COLD_DAYS, OLD_DAYS, UNIMPORTANT
from pipeline.jobs.aging.decay import STEPS, TIERS, LivedTime, half_life_days, importance_of, tier_of
from pipeline.kinds import TRAITS
from pipeline.records import Kind, Tier
from pipeline.store.fading import Usage

AHEAD_DAYS = (30.0, 90.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """How a memory fades, in days as its workspace lives them.

    `raised` is its importance as use has raised it, before any fading; `now` is what it should be today and `later` in
    so many days. `kind_days` is the half-life of its kind, `half_life_days` its own: twice as long for each of `risen`
    tiers, and longer with each of `uses`. `leaves_in_days` is when the archive may take it if nothing holds it.
    """

    given: float
    raised: float
    now: float
    later: tuple[tuple[float, float], ...]
    lasting: bool
    kind_days: float
    half_life_days: float
    risen: int
    uses: int
    unused_days: float
    leaves_in_days: float | None


def forecast(usage: Usage, lived: LivedTime, today: float, ahead: Sequence[float] = AHEAD_DAYS) -> Forecast:
    """Return how a memory fades from a Julian day on; whoever uses it, and a workspace that rests, puts it off."""
    tier, unused = tier_of(usage), lived.between(usage.used, today)
    half_life, raised = half_life_days(usage, tier), importance_of(usage._replace(lasting=True), tier, 0)
    return Forecast(
        given=usage.given,
        raised=raised,
        now=importance_of(usage, tier, unused),
        later=tuple((days, importance_of(usage, tier, unused + days)) for days in ahead),
        lasting=usage.lasting,
        kind_days=TRAITS[Kind(usage.kind)].half_life_days,
        half_life_days=half_life,
        risen=TIERS.index(tier) - TIERS.index(TRAITS[Kind(usage.kind)].tier),
        uses=usage.recalls + usage.repeats,
        unused_days=unused,
        leaves_in_days=None if usage.lasting else _leaves_in(usage, lived, today, raised, tier),
    )


def _leaves_in(usage: Usage, lived: LivedTime, today: float, raised: float, tier: Tier) -> float:
    unused = lived.between(usage.used, today)
    # The first step at which it is less important than what may go; nothing is taken below the floor.
    steps = 0 if raised < UNIMPORTANT else math.floor(STEPS * math.log2(raised / UNIMPORTANT)) + 1
    faded = steps * half_life_days(usage, tier) / STEPS - unused
    return max(0.0, faded, COLD_DAYS[tier] - unused, OLD_DAYS - lived.between(usage.written, today))
