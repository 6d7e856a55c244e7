"""Live through a year of nights with a clock set by hand: what stays, what goes, and whether recall notices.

Run by `make bench-year`. Two workspaces take the same memories in; decay and archive run in one of them every night.
"""

import argparse
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from benchmarks.figures import Aim, Limit, Report, latency
from benchmarks.questions import Question, questions
from benchmarks.year_plan import DAYS, Planned, moment, plan
from pipeline.features.aging.job import archive, decay
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.store import audit, changes, memories
from pipeline.kernel.times import utc_text
from pipeline.recall.feedback import UsageBuffer, write_usage
from pipeline.recall.search_context import DenseSearch
from pipeline.write.accept import commit
from tests.fakes.recall_workspace import RecallWorkspace, open_recall_workspace

MEMORIES, SEED, QUESTION_SEED = 20_000, 7, 23
ASKED, K = 200, 10
CHECKS = (60, 182, 365)
MONTH_DAYS = 365 / 12
# What is asked for is at least so old: the newest is in everybody's mind.
SETTLED_DAYS = 14
# Hits that nobody meant are counted too: each day such a share of a year's memories is recalled in passing.
IN_PASSING = 1 / 2000
# What answers one memory's question; a session's, or one without an answer, says nothing about what was kept.
ONE_ANSWER = frozenset({"literal", "paraphrase", "when", "keywords"})


@dataclass(frozen=True, slots=True)
class Month:
    """A workspace at the end of a month; `quantiles` are the 10th, 50th and 90th of active importance."""

    number: int
    active: int
    archived: int
    tiers: Mapping[str, int]
    quantiles: tuple[float, float, float]
    changes_a_night: int

    @property
    def working_set(self) -> int:
        """Return how many active memories are not settled yet."""
        return self.tiers.get("working", 0) + self.tiers.get("episodic", 0)


@dataclass(frozen=True, slots=True)
class Check:
    """Shares of questions whose answer is among the first ten hits, with jobs and without.

    `mattering` asks for what is recalled through the year, `forgotten` for what nobody ever recalled.
    """

    day: int
    asked: int
    mattering: tuple[float, float]
    forgotten: tuple[float, float]


@dataclass(slots=True)
class Year:
    """What a year came to; `kept` gives for each promise how many memories it covers and how many of them are lost."""

    months: list[Month] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    night_ms: list[float] = field(default_factory=list)
    refresh_ms: list[float] = field(default_factory=list)
    scan_ms: list[float] = field(default_factory=list)


def live(count: int, seed: int, asked: int = ASKED, tell: Callable[[Month], None] = lambda _: None) -> Year:
    """Live through a year of so many memories; `asked` is the number of questions of each kind at each check."""
    year, chance, calendar = Year(), random.Random(seed), _by_day(plan(count, seed))
    known: list[Planned] = []
    changed = 0
    with _world() as slept, _world() as awake:
        for day in range(1, DAYS + 1):
            known += _day(calendar[day - 1], slept, awake)
            _recall(slept, known, day, chance, math.ceil(count * IN_PASSING))
            _run_jobs(slept, day, year)
            if day in CHECKS:
                year.checks.append(_check(day, known, asked, slept, awake))
            if day >= round((len(year.months) + 1) * MONTH_DAYS):
                year.months.append(_month(slept, len(year.months) + 1, changed))
                changed = _nightly_changes(slept)
                tell(year.months[-1])
        year.kept = _count_kept(slept, known)
    return year


@contextmanager
def _world() -> Iterator[RecallWorkspace]:
    """Open a workspace in which words decide alone: no encoder stands between what was kept and what is found."""

    def absent(_model: str | None) -> DenseSearch:
        raise EncoderUnavailable("words decide alone")

    with open_recall_workspace() as workspace:
        workspace.reader = replace(workspace.reader, dense=absent)
        yield workspace


def _by_day(planned: Sequence[Planned]) -> Mapping[int, list[Planned]]:
    found: dict[int, list[Planned]] = defaultdict(list)
    for one in planned:
        found[int(one.day)].append(one)
    return found


def _day(today: Sequence[Planned], *workspaces: RecallWorkspace) -> Sequence[Planned]:
    for workspace in workspaces:
        commit(workspace.database, [one.prepared for one in today])
        with workspace.database.write() as db:
            for one in today:
                memory = memories.get(db, one.id) if one.pinned else None
                if memory is not None:
                    memories.update(db, memory.seq, {"pinned": 1}, memory.created_at)
    with workspaces[0].database.read() as db:
        return [one for one in today if memories.get(db, one.id) is not None]


def _recall(
    workspace: RecallWorkspace, known: Sequence[Planned], day: int, chance: random.Random, passing: int
) -> None:
    buffer = UsageBuffer()
    meant = [one.id for one in known for recalled in one.recalls if day - 1 <= recalled < day]
    with workspace.database.read() as db:
        active = [row[0] for row in db.execute("SELECT seq FROM memory WHERE archived_at IS NULL")]
    buffer.add_accesses(workspace.seq(memory_id) for memory_id in meant)
    buffer.add_accesses(chance.sample(active, min(passing, len(active))))
    with workspace.database.write() as db:
        write_usage(db, buffer.take(), utc_text(moment(day - 0.3)))


def _run_jobs(workspace: RecallWorkspace, day: int, year: Year) -> None:
    run = JobRun(workspace.database, moment(day))
    if day in CHECKS:
        year.scan_ms.append(_time_scan(workspace))
    began = time.perf_counter()
    decay(run)
    archive(run)
    slept = time.perf_counter()
    with workspace.database.read() as db:
        workspace.reader.ranking_features.refresh(db)
    year.night_ms.append((slept - began) * 1000)
    year.refresh_ms.append((time.perf_counter() - slept) * 1000)


def _time_scan(workspace: RecallWorkspace) -> float:
    """Return the milliseconds of reading all memories, which is the least that a night can do."""
    began = time.perf_counter()
    with workspace.database.read() as db:
        db.execute("SELECT seq, importance, tier, updated_at FROM memory").fetchall()
    return (time.perf_counter() - began) * 1000


def _month(workspace: RecallWorkspace, number: int, changes_before: int) -> Month:
    with workspace.database.read() as db:
        active = db.execute("SELECT tier, importance FROM memory WHERE archived_at IS NULL").fetchall()
        archived = db.execute("SELECT count(*) FROM memory WHERE archived_at IS NOT NULL").fetchone()[0]
    a_night = round((_nightly_changes(workspace) - changes_before) / MONTH_DAYS)
    ordered = sorted(importance for _, importance in active)
    p10, p50, p90 = (ordered[int(len(ordered) * share)] for share in (0.1, 0.5, 0.9))
    return Month(number, len(active), archived, dict(Counter(tier for tier, _ in active)), (p10, p50, p90), a_night)


def _nightly_changes(workspace: RecallWorkspace) -> int:
    with workspace.database.read() as db:
        row = db.execute("SELECT count(*) FROM change WHERE op IN (?, ?)", (changes.EDIT, changes.ARCHIVE)).fetchone()
    return int(row[0])


def _check(day: int, known: Sequence[Planned], count: int, slept: RecallWorkspace, awake: RecallWorkspace) -> Check:
    for workspace in (slept, awake):
        workspace.fold()
    mattering = _draw_questions([one for one in known if one.matters and one.day < day - SETTLED_DAYS], count)
    forgotten = _draw_questions(
        [one for one in known if not (one.matters or one.pinned) and one.day < day - SETTLED_DAYS], count
    )
    return Check(
        day,
        len(mattering),
        (_hits(slept, mattering), _hits(awake, mattering)),
        (_hits(slept, forgotten), _hits(awake, forgotten)),
    )


def _draw_questions(among: Sequence[Planned], count: int) -> list[tuple[Question, frozenset[str]]]:
    """Ask for some memories, each question with the ids that answer it."""
    drawn = questions([one.body for one in among], 2 * count, QUESTION_SEED)
    wanted = [question for question in drawn if question.kind in ONE_ANSWER][:count]
    return [(question, frozenset(among[place].id for place in question.sources)) for question in wanted]


def _hits(workspace: RecallWorkspace, asked: Sequence[tuple[Question, frozenset[str]]]) -> float:
    found = sum(bool(answers.intersection(workspace.find_ids(question.text, k=K))) for question, answers in asked)
    return round(found / max(len(asked), 1), 3)


def _count_kept(workspace: RecallWorkspace, known: Sequence[Planned]) -> dict[str, tuple[int, int]]:
    with workspace.database.read() as db:
        ever = {entry.memory_id for entry in audit.page(db, 2 * len(known), None)}
        faded = {
            row[0]
            for row in db.execute(
                "SELECT id FROM memory WHERE importance < given_importance AND (pinned = 1 OR (subject IS NOT NULL "
                "AND valid_to IS NULL))"
            )
        }
    promised = {
        "pinned": {one.id for one in known if one.pinned},
        "keyed facts": {one.id for one in known if one.prepared.memory.key is not None},
        "what matters": {one.id for one in known if one.matters},
    }
    lost = ever | faded
    return {name: (len(ids), len(ids & lost)) for name, ids in promised.items()}


def show(year: Year, report: Report) -> None:
    """Print what a year came to."""
    report.section("what the nights must keep")
    for name, (covered, lost) in year.kept.items():
        report.row(f"{name}: {covered}", f"{lost} archived or faded", (Aim("", 0), lost))
    report.section(f"hit@{K} with nights | without, on words alone")
    for check in year.checks:
        figure = f"what matters {_beside(check.mattering)}    what nobody recalled {_beside(check.forgotten)}"
        report.row(f"day {check.day}, {check.asked} questions", figure)
    report.section("time")
    limit = Limit("reading all memories", latency(year.scan_ms).p50)
    report.latency("a night", latency(year.night_ms), limit)
    report.latency("a reader takes in what it changed", latency(year.refresh_ms), limit)
    for name, value in asdict(year).items():
        report.keep(name, value=value if not name.endswith("_ms") else asdict(latency(value)))


def format_month(month: Month) -> str:
    """Return a month as a line of the table."""
    tiers = "  ".join(f"{name} {month.tiers.get(name, 0):>6,}" for name in ("working", "episodic", "semantic"))
    p10, p50, p90 = month.quantiles
    return (
        f"  {month.number:>2}  active {month.active:>6,}  archived {month.archived:>6,}  {tiers}  "
        f"importance {p10:.2f} {p50:.2f} {p90:.2f}  changes a night {month.changes_a_night:>4}"
    )


def _beside(shares: tuple[float, float]) -> str:
    return f"{shares[0]:.3f} | {shares[1]:.3f}"


def main() -> None:
    """Live through one year and tell of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    report = Report()
    report.section(f"{chosen.memories:,} memories, {DAYS} nights; the end of each month")
    show(live(chosen.memories, chosen.seed, tell=lambda month: print(format_month(month), flush=True)), report)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
