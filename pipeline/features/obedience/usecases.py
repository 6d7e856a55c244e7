"""Record which acts kept or broke the rules that were shown before them, and report it for each rule."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from pipeline.features.lessons.prohibitions import may_guard
from pipeline.features.obedience.acts import Act
from pipeline.features.obedience.judge import MOST_BEFORE, judge_act
from pipeline.features.obedience.rules import is_decidable
from pipeline.kernel.kinds import render_rule
from pipeline.kernel.records import Kind, Memory, Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import agent_sessions, impressions, memories
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.impressions import Impression, JudgedAct
from pipeline.kernel.store.visibility import visible_sessions_condition
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.recall.feedback import FeedbackWriter
from pipeline.write.tool_actions import Outcome, describe_action

# The latest impressions of a session, and of a rule, that are compared.
MOST_IMPRESSIONS = 100
MOST_USES = 50
# Seconds for all rules of a call.
LONGEST_S = 0.5
# The longest target of an act that is stored.
TARGET_CHARS = 200
# A rule that was shown so often and never concerned an act is proposed for archiving; one that was broken so often, as
# a guard.
SHOWN_OFTEN = 10
BROKEN_TWICE = 2
# Transcripts that are searched for the lines of acts, and the longest of them in bytes.
MOST_TRANSCRIPTS, LONGEST_TRANSCRIPT = 20, 1 << 26


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call that was made: tool, arguments and outcome; `call_id` and `transcript` say where its host has it."""

    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    call_id: str = ""
    transcript: str = ""


class ObedienceService:
    """Record in the background which rules the calls of agents kept or broke."""

    def __init__(self, feedback: FeedbackWriter, is_off_the_record: Callable[[Workspace, str | None], bool]) -> None:
        self._feedback = feedback
        self._is_off_the_record = is_off_the_record

    def record(self, workspace: Workspace, session: AgentSession, call: MadeCall, at: str | None = None) -> None:
        """Record which rules a call kept or broke; for a call of a spooled event, at its time."""
        if session.id is not None and workspace.access.keeps_journal:
            task = partial(self._record, workspace, session, call, at or utc_now())
            self._feedback.submit_logged("hooks", workspace.id, task)

    def _record(self, workspace: Workspace, session: AgentSession, call: MadeCall, at: str) -> None:
        if not self._is_off_the_record(workspace, session.id):
            record_obedience(workspace, session, call, at)


def record_obedience(workspace: Workspace, session: AgentSession, call: MadeCall, at: str) -> None:
    """Record which rules a call kept or broke that its agent was shown in this session before it.

    This answers no impression: what agents are shown does not depend on it.
    """
    if session.id is None or not workspace.exists:
        return
    with workspace.database.read() as db:
        # A call of a spooled event is compared with what came before it, not before its delivery.
        shown = impressions.list_of_agent(db, session.id, session.agent_id, at, MOST_IMPRESSIONS)
        rules = memories.by_seqs(db, {impression.memory_seq for impression in shown})
        before = agent_sessions.list_actions(db, session.id, "", MOST_BEFORE, at)
    verdicts = _judge(session, call, shown, rules, before) if _may_judge(call) and rules else []
    if not verdicts:
        return
    action = describe_action(session.id, session.agent_id, at, call.tool, call.arguments, call.outcome, session.cwd)
    target = "" if action is None else action.target[:TARGET_CHARS]
    with workspace.database.write() as db:
        for impression, is_kept in verdicts:
            act = JudgedAct(at, call.tool[:TARGET_CHARS], target, is_kept, call.call_id, call.transcript)
            impressions.add_act(db, impression.id, act)


def _may_judge(call: MadeCall) -> bool:
    """Return whether a call was surely made: a failed test ran, and another failed call may not have."""
    if call.outcome.ok:
        return True
    action = describe_action("", None, "", call.tool, call.arguments, call.outcome, "")
    return action is not None and action.type is ActionType.TEST


def _judge(
    session: AgentSession,
    call: MadeCall,
    shown: Sequence[Impression],
    rules: Mapping[int, Memory],
    actions: Sequence[Action],
) -> list[tuple[Impression, bool]]:
    """Return the latest impression of each rule that a call kept or broke."""
    act = Act.of_call(call.tool, call.arguments, session.cwd)
    before = [
        Act.of_action(action)
        for action in actions
        if action.agent_id == session.agent_id and (action.ok or action.type is ActionType.TEST)
    ]
    verdicts: dict[int, tuple[Impression, bool]] = {}
    latest = {impression.memory_seq: impression for impression in shown}
    deadline = time.monotonic() + LONGEST_S
    for seq, impression in reversed(latest.items()):
        rule = rules.get(seq)
        if rule is None or rule.kind is not Kind.LESSON:
            continue
        if time.monotonic() > deadline:
            # A line of many commands: other notes of hooks wait for this thread.
            break
        is_kept = judge_act(render_rule(rule), act, before)
        if is_kept is not None:
            verdicts[rule.seq] = impression, is_kept
    return list(verdicts.values())


class RuleVerdict(StrEnum):
    """Whether the acts after a rule kept it."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_CONCERNED = "not concerned"
    NOT_DECIDABLE = "not decidable"


class Proposal(StrEnum):
    """What the report proposes for a rule."""

    GUARD = "guard"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class ReportedAct:
    """An act after a rule, and the number of its line in the transcript; None if the transcript has it no more."""

    act: JudgedAct
    line: int | None = None

    @property
    def transcript(self) -> str:
        """Return the name of the transcript's file."""
        return Path(self.act.transcript).name


@dataclass(frozen=True, slots=True)
class RuleUse:
    """One time that a rule was shown, and the acts that followed and concerned it."""

    impression: Impression
    acts: Sequence[ReportedAct]


@dataclass(frozen=True, slots=True)
class RuleReport:
    """A rule, its latest uses, how many acts kept and broke it in these, and a proposal."""

    memory: Memory
    shown: int
    uses: Sequence[RuleUse]
    kept: int
    broken: int
    verdict: RuleVerdict
    proposal: Proposal | None


def report_rules(workspace: Workspace, viewer: Viewer, limit: int) -> list[RuleReport]:
    """Report the rules that the person's sessions were shown, those first that acts broke, then the most shown."""
    among = visible_sessions_condition(workspace.person_id)
    with workspace.database.read() as db:
        counted = dict(impressions.tally_lessons(db, viewer, (), among))
        reports = [
            _report(rule, counted[seq].shown, _list_uses(db, seq, among))
            for seq, rule in memories.by_seqs(db, counted).items()
        ]
    ordered = sorted(reports, key=lambda report: (-report.broken, -report.shown, -report.memory.seq))[:limit]
    lines = _find_lines([made.act for report in ordered for use in report.uses for made in use.acts])
    return [replace(report, uses=[_add_lines(use, lines) for use in report.uses]) for report in ordered]


def _add_lines(use: RuleUse, lines: Mapping[tuple[str, str], int]) -> RuleUse:
    acts = [replace(made, line=lines.get((made.act.transcript, made.act.call_id))) for made in use.acts]
    return replace(use, acts=acts)


def _list_uses(db: Connection, seq: int, among: str) -> list[RuleUse]:
    """List the latest uses of a rule among some impressions."""
    latest = impressions.latest(db, seq, MOST_USES, among)
    acts = impressions.list_acts(db, [impression.id for impression in latest])
    return [RuleUse(impression, list(map(ReportedAct, acts.get(impression.id, ())))) for impression in latest]


def _report(rule: Memory, shown: int, uses: Sequence[RuleUse]) -> RuleReport:
    made = [reported.act for use in uses for reported in use.acts]
    kept = sum(act.is_kept for act in made)
    broken = len(made) - kept
    verdict = RuleVerdict.BROKEN if broken else RuleVerdict.KEPT if kept else RuleVerdict.NOT_CONCERNED
    is_answered = any(use.impression.followed is not None for use in uses)
    if not made and not is_decidable(render_rule(rule)):
        verdict = RuleVerdict.NOT_DECIDABLE
    proposal = None
    if broken >= BROKEN_TWICE and may_guard(rule):
        proposal = Proposal.GUARD
    elif shown >= SHOWN_OFTEN and verdict is RuleVerdict.NOT_CONCERNED and not (is_answered or rule.pinned):
        proposal = Proposal.ARCHIVE
    return RuleReport(rule, shown, uses, kept, broken, verdict, proposal)


def _find_lines(acts: Sequence[JudgedAct]) -> dict[tuple[str, str], int]:
    """Return the numbers of the lines of transcripts that have the calls of acts, by transcript and call."""
    sought: dict[str, dict[bytes, str]] = defaultdict(dict)
    for act in acts:
        if act.call_id and act.transcript.endswith(".jsonl"):
            sought[act.transcript][f'"{act.call_id}"'.encode()] = act.call_id
    found: dict[tuple[str, str], int] = {}
    for transcript, calls in list(sought.items())[:MOST_TRANSCRIPTS]:
        for number, call_id in _search(Path(transcript), calls):
            found.setdefault((transcript, call_id), number)
    return found


def _search(file: Path, calls: Mapping[bytes, str]) -> Iterator[tuple[int, str]]:
    try:
        if not file.is_file() or file.stat().st_size > LONGEST_TRANSCRIPT:
            return
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield from ((number, call_id) for sought, call_id in calls.items() if sought in line)
    except (OSError, ValueError):
        # The host deletes old transcripts.
        return
