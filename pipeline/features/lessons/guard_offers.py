"""Offer to block the calls that a person's rule forbids, and turn the rule into a guard on the person's word."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.features.lessons.advice import LOOKED_AT
from pipeline.features.lessons.prohibitions import REMINDER_TAG, forbids_command, may_guard, mentions_command
from pipeline.kernel.errors import Conflict
from pipeline.kernel.records import (
    CAPTURED_TAG,
    SHORT_ID,
    Draft,
    Filter,
    Kind,
    Memory,
    Outcome,
    Revision,
    Source,
    Trust,
    Viewer,
)
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import memories, meta, turns
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.text.own_words import list_own_lines
from pipeline.text.quoting import quote
from pipeline.text.sentences import split_sentences
from pipeline.write import revise
from pipeline.write.accept import accept

# Number of a session's last messages that are searched for the rule that a person wants to block.
LAST_MESSAGES = 6
RULE_CHARS = 160
CRITICAL = "critical"


class GuardVerdict(StrEnum):
    """Whether a rule blocks the calls that it forbids, or only reminds the agent."""

    BLOCK = "block"
    REMIND = "remind"


def make_guard_offer(workspace: Workspace, session: AgentSession, message: str) -> list[str]:
    """Return the offer to block what a rule of the session forbids, once per rule, if the message mentions it."""
    # A reader's answer could not change the rule.
    if workspace.settings.lesson_guard == "off" or not workspace.access.notes_sessions:
        return []
    for rule in _list_rules_of_session(workspace, session):
        if mentions_command(rule.content, message) and _note_offer(workspace, rule):
            text = quote(" ".join(rule.content.split())[:RULE_CHARS])
            offer = f"Your user's rule [{rule.id[-SHORT_ID:]}] {text} can block the calls that it forbids."
            return [f'{offer} Block this from now on? Their answer "block this from now on" turns it on.']
    return []


def _note_offer(workspace: Workspace, rule: Memory) -> bool:
    """Record that a rule is offered; return False if it was before."""
    key = f"{meta.GUARD_OFFER}{rule.id}"
    with workspace.database.read() as db:
        if meta.get(db, key) is not None:
            return False
    with workspace.database.write() as db:
        return meta.put_if_absent(db, key, utc_now())


@dataclass(frozen=True, slots=True)
class BlockedRule:
    """The result of a word to block: the guarding rule, or why there is none."""

    rule: Memory | None
    says: str


def block_rule(workspace: Workspace, session: AgentSession, text: str, message: str) -> BlockedRule | None:
    """Make a rule critical: the text of the command, a rule in the message, or the session's last one.

    Return None if there is no such rule.
    """
    said = text or next(iter(_list_prohibitions(message)), "")
    rule = None if said else next(iter(_list_rules_of_session(workspace, session)), None)
    if rule is not None:
        return _describe(_make_critical(workspace, rule))
    said = said or _find_said_rule(workspace, session)
    if not said:
        return None
    draft = Draft(
        said,
        Kind.LESSON,
        tags=(CAPTURED_TAG,),
        session_id=session.id,
        source=Source.USER,
        details={"rule": said, "severity": CRITICAL},
    )
    receipt = accept(workspace.create(), draft, workspace.write_policy())
    if receipt.outcome is Outcome.REJECTED:
        return BlockedRule(None, f"Reverie did not store the rule: {receipt.reason}")
    with workspace.database.read() as db:
        stored = memories.get(db, receipt.id)
    return None if stored is None else _describe(stored)


def list_guard_offers(workspace: Workspace, viewer: Viewer, limit: int) -> list[Memory]:
    """List the rules in people's words that could block calls and do not yet, newest first."""
    with workspace.database.read() as db:
        lessons = memories.page(db, Filter(kinds=(Kind.LESSON,), viewer=viewer), LOOKED_AT, None)
    return [lesson for lesson in lessons if may_guard(lesson)][:limit]


def settle_guard_offer(workspace: Workspace, memory_id: str, verdict: GuardVerdict) -> str:
    """Make a rule a guard, or keep it as a reminder; return its earlier severity.

    Raises Conflict if the rule was decided before.
    """
    with workspace.database.read() as db:
        rule = revise.get_existing(db, memory_id)
    if not may_guard(rule):
        raise Conflict("this rule was decided before")
    if verdict is GuardVerdict.BLOCK:
        _make_critical(workspace, rule)
    else:
        revise.edit(workspace.database, rule.id, Revision(tags=(*rule.tags, REMINDER_TAG)))
    return str(rule.details.get("severity"))


def reopen_guard_offer(workspace: Workspace, memory_id: str, severity: str) -> None:
    """Undo a decision: the rule no longer blocks, and waits for a decision again."""
    with workspace.database.read() as db:
        rule = revise.get_existing(db, memory_id)
    tags = tuple(tag for tag in rule.tags if tag != REMINDER_TAG)
    revise.edit(workspace.database, rule.id, Revision(tags=tags, details={"severity": severity}))


def _describe(rule: Memory) -> BlockedRule:
    text = " ".join(rule.content.split())[:RULE_CHARS]
    return BlockedRule(rule, f"Reverie now stops calls that [{rule.id[-SHORT_ID:]}] forbids: {text}")


def _make_critical(workspace: Workspace, rule: Memory) -> Memory:
    # The person's word confirms a rule that was captured.
    return revise.edit(workspace.database, rule.id, Revision(details={"severity": CRITICAL}, trust=Trust.TRUSTED))


def _list_rules_of_session(workspace: Workspace, session: AgentSession) -> list[Memory]:
    """List the rules of a session that could block calls and do not yet, newest first."""
    if session.id is None or not workspace.exists:
        return []
    criteria = Filter(kinds=(Kind.LESSON,), session_id=session.id, viewer=session.viewer)
    with workspace.database.read() as db:
        return list(filter(may_guard, memories.page(db, criteria, LOOKED_AT, None)))


def _find_said_rule(workspace: Workspace, session: AgentSession) -> str:
    """Return the last rule that a person said in a session and that capture has not read yet."""
    if session.id is None or not workspace.exists:
        return ""
    with workspace.database.read() as db:
        last = turns.page(db, session.id, LAST_MESSAGES, None)
    said = [
        rule for turn in last if turn.role is turns.Role.USER for rule in reversed(_list_prohibitions(turn.content))
    ]
    return said[0] if said else ""


def _list_prohibitions(message: str) -> list[str]:
    """Return the sentences of a message, in the person's own words, that forbid a call."""
    sentences = [sentence.strip() for line in list_own_lines(message) for sentence in split_sentences(line)]
    return [sentence for sentence in sentences if forbids_command(sentence)]
