"""Find what was done about an error before: the actions between a failure and the success of the same command.

The agent may have explained in a sentence how it solved the error.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection

from pipeline.kernel.store import action_history
from pipeline.kernel.store.agent_sessions import JournalRow
from pipeline.kernel.times import parse
from pipeline.sessions.failed_commands import RepeatedCommand, is_step, name_step
from pipeline.text.error_signature import compare_signatures, list_signatures
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import search_tokens

# Actions of a session that are looked at after a failure.
FOLLOWING = 80
# Different errors that are compared if an error has not occurred in the same words.
COMPARED_ERRORS = 3000
MOST_SIMILAR = 5
LEAST_LIKENESS = 0.62
MOST_STEPS = 3
MAX_STEP_CHARS = 160
# The number of occurrences that are looked at while an agent waits.
RECENT = 8
# How much a success counts: of the same command, or only that the error did not come back.
REPEATED, PASSED, NOT_BACK, RETRIED = 1.0, 0.8, 0.35, 0.2
# A step that was followed by the same error.
FAILED_AGAIN = -0.7
# By position before the success, the last step first; earlier steps count as the last weight.
POSITIONS = (1.0, 0.7, 0.5, 0.3)
NAMED_IN_ERROR = 0.8
HALF_LIFE_DAYS = 180
# Messages after a success that are read.
ANSWERS = 3
MAX_SENTENCE_CHARS = 240
LEAST_SHARED = 2
_REASON = re.compile(
    r"(?i)\b(?:because|cause[ds]?|due to|fix(?:ed|es)?|solved|the (?:problem|issue|reason|error) (?:was|is)|so that"
    r"|weil|behoben|parce que|porque)\b"
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What was done between an error and the next success, in how many sessions it worked, and the last of them.

    `confirmed` is whether the same command succeeded afterwards. Without steps, the command succeeded when it was run
    again. `likeness` is 1 for the same error and lower for a similar one.
    """

    steps: tuple[JournalRow, ...]
    failure: JournalRow
    success: JournalRow | None
    sessions: int
    confirmed: bool
    likeness: float

    @property
    def at(self) -> str:
        """Return the time of the last step."""
        return (self.success or self.steps[-1]).at


@dataclass(frozen=True, slots=True)
class Fixes:
    """An error's occurrences, newest first, and its remedies, best first."""

    occurrences: tuple[JournalRow, ...]
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True, slots=True)
class _Course:
    """The course of a session after a failure."""

    failure: JournalRow
    success: JournalRow | None
    steps: tuple[JournalRow, ...]
    failed_steps: tuple[JournalRow, ...]
    weight: float


def find_fixes(db: Connection, error: str, person: str | None, limit: int, compared: int = COMPARED_ERRORS) -> Fixes:
    """Return what was done about an error, or about the most similar errors if nothing is known about it."""
    signatures = list_signatures(error)
    fixes = Fixes((), ())
    for signature in signatures:
        fixes = _collect(db, {signature: 1.0}, person, limit)
        if fixes.occurrences:
            break
    if fixes.remedies:
        return fixes
    similar = _list_similar(db, signatures, person, compared)
    others = _collect(db, similar, person, limit) if similar else Fixes((), ())
    return Fixes(fixes.occurrences or others.occurrences, others.remedies)


def find_remedy_of(db: Connection, signature: str, person: str | None) -> Remedy | None:
    """Return the best remedy against exactly this error."""
    return next(iter(_collect(db, {signature: 1.0}, person, 1).remedies), None)


def find_known_remedy(db: Connection, signature: str, person: str | None) -> Remedy | None:
    """Return the best remedy that worked against exactly this error."""
    remedies = _collect(db, {signature: 1.0}, person, RECENT, RECENT).remedies
    return next((remedy for remedy in remedies if remedy.confirmed and remedy.steps), None)


def _list_similar(db: Connection, signatures: Sequence[str], person: str | None, compared: int) -> dict[str, float]:
    likeness = {
        known: max(
            (compare_signatures(signature, line) for signature in signatures for line in list_signatures(text)),
            default=0.0,
        )
        for known, text in action_history.list_errors(db, person, compared).items()
    }
    near = sorted((item for item in likeness.items() if item[1] >= LEAST_LIKENESS), key=lambda item: -item[1])
    return dict(near[:MOST_SIMILAR])


def _collect(
    db: Connection,
    likeness: dict[str, float],
    person: str | None,
    limit: int,
    occurrences: int = action_history.OCCURRENCES,
) -> Fixes:
    failures = action_history.list_occurrences(db, list(likeness), person, occurrences)
    courses = [_follow(failure, action_history.list_following(db, failure, FOLLOWING)) for failure in failures]
    return Fixes(tuple(failures), tuple(_rank(_drop_repeated(courses), likeness)[:limit]))


def _follow(failure: JournalRow, following: Sequence[JournalRow]) -> _Course:
    """Return the course of a session after a failure; if the error comes back, its last occurrence counts."""
    last, command = failure, RepeatedCommand(failure)
    steps: list[JournalRow] = []
    failed: list[JournalRow] = []
    passed: list[JournalRow] | None = None
    for action in following:
        if action.error_signature is not None and action.error_signature == failure.error_signature:
            last, command = action, RepeatedCommand(action)
            failed, steps, passed = failed + steps, [], None
        elif action.ok and command.is_repeated_by(action):
            if command.is_varied_by(action):
                steps.append(action)
            return _Course(last, action, tuple(steps), tuple(failed), REPEATED if steps else RETRIED)
        elif action.ok and is_step(action, last):
            steps.append(action)
        elif not action.ok and action.target == last.target and passed is None:
            # The command fails with another error: this one is solved.
            passed = list(steps)
    if passed:
        return _Course(last, None, tuple(passed), tuple(failed), PASSED)
    return _Course(last, None, tuple(steps), tuple(failed), NOT_BACK if steps else 0.0)


def _drop_repeated(courses: Iterable[_Course]) -> list[_Course]:
    """Return the courses without those that end with the same success as a course with more failures."""
    by_end: dict[tuple[str, int], _Course] = {}
    for course in courses:
        key = course.failure.session_id, course.failure.seq
        if key not in by_end or len(course.failed_steps) > len(by_end[key].failed_steps):
            by_end[key] = course
    return list(by_end.values())


def _rank(courses: Sequence[_Course], likeness: dict[str, float]) -> list[Remedy]:
    support = _weigh_steps(courses)
    groups: dict[str, list[_Course]] = defaultdict(list)
    for course in courses:
        if course.weight > 0:
            groups[_name_key_step(course, support)].append(course)
    newest = max((course.failure.at for course in courses), default="")
    scored = []
    for key, group in groups.items():
        latest = max(group, key=lambda course: (course.weight, course.failure.at))
        score = sum(
            course.weight * likeness[course.failure.error_signature or ""] * _decay(course.failure.at, newest)
            for course in {course.failure.session_id: course for course in group}.values()
        )
        score += min(0.0, support[key]) if key else 0.0
        scored.append((score, latest.failure.at, _make_remedy(latest, group, support, likeness)))
    scored.sort(key=lambda item: item[:2], reverse=True)
    return [remedy for _, _, remedy in scored]


def _weigh_steps(courses: Sequence[_Course]) -> Counter[str]:
    """Return how much speaks for each step, in all sessions together."""
    support: Counter[str] = Counter()
    for course in courses:
        words = set((course.failure.error_signature or "").split()) - {"error", "not", "found"}
        best: dict[str, float] = {}
        for index, step in enumerate(reversed(course.steps)):
            position = POSITIONS[min(index, len(POSITIONS) - 1)]
            name = name_step(step)
            named = NAMED_IN_ERROR if _is_named(step, words) else 0.0
            best[name] = max(best.get(name, 0.0), course.weight * (position + named))
        support.update(best)
        support.update({name_step(step): FAILED_AGAIN for step in course.failed_steps})
    return support


def _is_named(step: JournalRow, words: set[str]) -> bool:
    text = step.target.lower()
    return any(len(word) > 3 and word in text for word in words)


def _name_key_step(course: _Course, support: Counter[str]) -> str:
    if not course.steps:
        return ""
    names = [name_step(step) for step in course.steps]
    return max(reversed(names), key=lambda name: support[name])


def _make_remedy(
    latest: _Course, group: Sequence[_Course], support: Counter[str], likeness: dict[str, float]
) -> Remedy:
    key = _name_key_step(latest, support)
    bar = support[key] / 2
    steps = [step for step in latest.steps if name_step(step) == key or support[name_step(step)] >= bar]
    unique = {name_step(step): step for step in steps}
    kept = sorted(unique.values(), key=lambda step: (name_step(step) != key, -step.seq))[:MOST_STEPS]
    return Remedy(
        tuple(sorted(kept, key=lambda step: step.seq)),
        latest.failure,
        latest.success,
        len({course.failure.session_id for course in group}),
        latest.weight >= PASSED,
        likeness[latest.failure.error_signature or ""],
    )


def _decay(at: str, newest: str) -> float:
    age: datetime = parse(at)
    days = max(0.0, (parse(newest) - age).total_seconds() / 86400)
    return math.pow(0.5, days / HALF_LIFE_DAYS)


def find_explanation(db: Connection, remedy: Remedy) -> str | None:
    """Return the agent's sentence after a success that is about the error or its remedy and says why."""
    if not remedy.steps:
        return None
    about = {remedy.failure.error_signature or "", *(step.target for step in remedy.steps)}
    words = {word for text in about for word in search_tokens(text)}
    best: tuple[int, str] | None = None
    for answer in action_history.list_answers(db, remedy.failure.session_id, remedy.at, ANSWERS):
        for sentence in split_sentences(answer):
            if len(sentence) > MAX_SENTENCE_CHARS or _REASON.search(sentence) is None:
                continue
            shared = len(words & set(search_tokens(sentence)))
            if shared >= LEAST_SHARED and (best is None or shared > best[0]):
                best = shared, sentence
    return None if best is None else best[1]
