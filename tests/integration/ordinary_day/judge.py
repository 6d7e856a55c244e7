"""Judge what a step showed and what is stored after it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.integration.ordinary_day.player import Outcome, Player
from tests.integration.ordinary_day.steps import Step
from tests.integration.ordinary_day.stored import ACTIVE, CANDIDATE, StoredMemory, is_personal
from tests.support.stack import wait_until

SHOWN_CHARS = 400
# Erasing may end a moment after its work item: files of queues are rewritten by their own programs.
ERASED_S = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation of a step that was not met."""

    step: Step
    what: str
    shown: str = ""


class Judge:
    """Compare steps with what happened."""

    def __init__(self, player: Player) -> None:
        self._player = player
        # By session: steps whose turn is read at the end of the next one.
        self._later: dict[str, list[Step]] = {}

    def judge(self, step: Step, outcome: Outcome) -> list[Failure]:
        """List the expectations of a step that were not met, and those of earlier steps that can be judged only now."""
        shown = outcome.text if len(outcome.text) <= SHOWN_CHARS else outcome.text[:SHOWN_CHARS] + " …"
        note = f" ({outcome.note})" if outcome.note else ""
        memories = self._read_memories(step)
        problems = [*_check_shown(step, outcome), *self._check_stored(step, memories), *self._check_gone(step)]
        failures = [Failure(step, f"{problem}{note}", shown) for problem in problems]
        if step.reply or step.end:
            for earlier in self._later.pop(step.session, []):
                failures += [Failure(earlier, f"{one} (after step {step.step})") for one in _find(earlier, memories)]
        if step.interrupted:
            self._later.setdefault(step.session, []).append(step)
        return failures

    def _read_memories(self, step: Step) -> list[StoredMemory]:
        data, now = self._player.machine.data, self._player.now_text()
        if self._player.machine.is_up:
            return data.list_memories(now)
        scratch = self._player.machine.folder / f"copies-{step.step}"
        scratch.mkdir()
        return data.read_copies(now, scratch)

    def _check_stored(self, step: Step, memories: Sequence[StoredMemory]) -> Iterator[str]:
        workspace = self._player.machine.workspace(step.project) if step.stored else ""
        for wanted in step.stored:
            named = [memory for memory in memories if wanted["text"] in memory.text]
            if not any(_is_wanted(memory, wanted, workspace) for memory in named):
                seen = "; ".join(f"{one.workspace}/{one.kind}/{one.status}: {one.text[:80]}" for one in named)
                yield f"not stored: {dict(wanted)}, but [{seen}]"
        yield from _find(step, memories)

    def _check_gone(self, step: Step) -> Iterator[str]:
        data = self._player.machine.data
        for text in step.gone:
            try:
                wait_until("erased", lambda text=text: not data.find_bytes(text), ERASED_S)
            except AssertionError:
                yield f"not gone: {text!r} is in {', '.join(data.find_bytes(text))}"


def _find(step: Step, memories: Sequence[StoredMemory]) -> Iterator[str]:
    for text in step.not_stored:
        for memory in memories:
            if memory.status in (ACTIVE, CANDIDATE) and _is_in(text, memory.text):
                yield f"stored: {text!r} in {memory.workspace}/{memory.kind}/{memory.status}: {memory.text[:120]}"


def _is_wanted(memory: StoredMemory, wanted: Mapping[str, str], workspace: str) -> bool:
    where = wanted.get("where")
    in_place = where is None or (is_personal(memory) if where == "personal" else memory.workspace == workspace)
    return in_place and memory.kind == wanted.get("kind", memory.kind) and memory.status == wanted.get("status", ACTIVE)


def _check_shown(step: Step, outcome: Outcome) -> Iterator[str]:
    yield from _check_silence(step, outcome)
    seen = outcome.text + (outcome.shown_before if step.in_session else "")
    for wanted in step.shown:
        alternatives = [wanted] if isinstance(wanted, str) else wanted
        if not any(_is_in(text, seen) for text in alternatives):
            yield f"not shown: {wanted!r}"
    if step.first is not None:
        first = outcome.results[0] if outcome.results else ""
        if not _is_in(step.first, first):
            yield f"not first: {step.first!r}; first is {first.strip()[:160]!r}"
    if step.blocked is not None and step.blocked != outcome.is_blocked:
        yield "blocked" if outcome.is_blocked else "not blocked"
    if step.refused is None and outcome.is_refused:
        yield "ended with an error"
    elif step.refused is not None and step.refused.lower() not in outcome.text.lower():
        yield f"refused without {step.refused!r}" if outcome.is_refused else "not refused"


def _check_silence(step: Step, outcome: Outcome) -> Iterator[str]:
    if step.silent is True and not outcome.is_empty:
        yield "not silent"
    elif isinstance(step.silent, list):
        yield from (f"shown: {text!r}" for text in step.silent if _is_in(text, outcome.text))


def _is_in(text: str, shown: str) -> bool:
    """Return whether a text was shown; a number only where it stands for itself."""
    if text.isdecimal():
        return re.search(rf"(?<![\w.]){text}(?!\w|\.\d)", shown) is not None
    return text in shown
