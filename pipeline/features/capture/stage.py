"""The capture stage: read turns once for lasting statements, and offer these to the store.

Every proposal passes admission like any other write. Statements about the person go to their own store.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from sqlite3 import Connection
from typing import Any, Final

from pipeline.features.capture import said_changes, store as near_statements
from pipeline.features.capture.change_pairs import SaidChange, is_stated
from pipeline.features.capture.exchanges import Exchange, drop_settled, find_settled, settle_values
from pipeline.features.capture.model import extract, read_context, supersede_named
from pipeline.features.capture.proposals import Proposal, choose_lasting, explain_dropped, list_sentences, propose
from pipeline.features.capture.said_changes import EarlierStatement
from pipeline.features.capture.slots import Slot, find_slot
from pipeline.features.capture.store import NearStatement, checksum_of
from pipeline.features.model.extractor import JobModel
from pipeline.index.encoder import Encoder
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, FactKey, Filter, Kind, Memory, Outcome, Receipt, Scope
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.records.people import owner_of, personal_scope
from pipeline.kernel.stage_loop import run_each
from pipeline.kernel.store import agent_sessions, audit, changes, edges, facts, memories, turns, work
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.history import written_by
from pipeline.kernel.store.turns import Role, Turn
from pipeline.kernel.times import utc_now
from pipeline.sessions.orders.commands import has_sure_command
from pipeline.sessions.statements import Statement, StatementReader
from pipeline.text.names import is_same_fact
from pipeline.text.personal_facts import USER
from pipeline.write.accept import write_all
from pipeline.write.fact_placement import end_at, fact_key
from pipeline.write.prepare import Prepared, prepare, prepare_fact
from pipeline.write.revise import archive_memory

ACTOR: Final = "capture"
# More facts than a person speaks about.
MAX_KNOWN: Final = 2000
MAX_WAITING: Final = 20
# The newest memories without a key that a new fact may supersede.
MAX_STATEMENTS: Final = 200


def list_known_values(db: Connection, scope: Scope, subject: str | None = None) -> Mapping[FactKey, Any]:
    """Return the current values of a scope's facts, of one subject or all."""
    current = facts.page(db, scope, subject, utc_now(), MAX_KNOWN, None)
    return {fact.key: fact.details.get("value") for fact in current if fact.key is not None}


def prepare_proposal(proposal: Proposal) -> Prepared:
    """Prepare what a proposal stores: its sentence, or the fact that the sentence sets."""
    slot, draft = proposal.slot, proposal.draft
    if slot is None or slot.value is None:
        return prepare(draft)
    fact = replace(draft, metadata={**draft.metadata, "said": draft.content}, scope=draft.scope or Scope(), details={})
    key = fact_key(slot.keys[0].subject, slot.keys[0].attribute)
    return replace(prepare_fact(key, slot.value, fact), is_certain=slot.is_certain)


def store_proposal(db: Connection, proposal: Proposal, prepared: Prepared, policy: WritePolicy) -> Receipt | None:
    """Store a proposal within a transaction; a statement about a fact sets or ends it.

    Return the receipt of a memory that was written.
    """
    slot = proposal.slot
    if slot is None:
        (receipt,) = write_all(db, [prepared], policy)
        return receipt
    if slot.value is not None:
        return _set_fact(db, prepared, policy)
    _end_facts(db, slot, proposal.draft, policy)
    return None


def _set_fact(db: Connection, prepared: Prepared, policy: WritePolicy) -> Receipt | None:
    memory = prepared.memory
    assert memory.key is not None
    assert memory.valid_from is not None
    holder = facts.find_valid(db, memory.key, memory.scope, memory.valid_from)
    waiting = [
        candidate
        for candidate in facts.list_waiting(db, memory.key, memory.scope, MAX_WAITING)
        if candidate.details.get("value") == memory.details.get("value")
    ]
    if not prepared.is_certain and holder is not None and holder.details.get("value") != memory.details.get("value"):
        if waiting:
            return None
        policy = replace(policy, suggest=True)
    (receipt,) = write_all(db, [prepared], policy)
    if receipt.outcome is Outcome.CREATED:
        _supersede_statements(db, memories.get(db, receipt.id))
    if receipt.replaced is not None:
        audit.add(db, memory.created_at, ACTOR, AuditAction.CLOSE, receipt.replaced, receipt.id)
    if prepared.is_certain and not policy.suggest:
        # What waited for review is said with certainty now.
        for candidate in waiting:
            archive_memory(db, candidate, memory.created_at)
    return receipt


def _supersede_statements(db: Connection, fact: Memory | None) -> None:
    """Mark earlier memories without a key that state another value of a new fact as superseded."""
    assert fact is not None
    superseded = [other for other, value in _list_statements(db, fact) if value != fact.details["value"]]
    for other in superseded:
        edges.add(db, fact.seq, EdgeKind.SUPERSEDES, other.seq, ACTOR, fact.created_at)
    if superseded:
        changes.append_link(db, EdgeKind.SUPERSEDES, fact.id, [other.id for other in superseded])


def _list_statements(db: Connection, fact: Memory) -> Iterator[tuple[Memory, Any]]:
    """Yield the earlier memories without a key that state a value of a fact, and the value."""
    assert fact.key is not None
    name = f"{fact.key.subject} {fact.key.attribute}"
    for other in memories.page(db, Filter(scope=fact.scope, kinds=(Kind.FACT,)), MAX_STATEMENTS, None):
        slot = None if other.pinned or other.occurred_at > fact.occurred_at else find_slot(other.content, {})
        if slot is not None and slot.value is not None:
            key = slot.keys[0]
            if is_same_fact(f"{key.subject} {key.attribute}", name):
                yield other, slot.value


def _end_facts(db: Connection, slot: Slot, draft: Draft, policy: WritePolicy) -> None:
    moment, scope, now = draft.occurred_at or utc_now(), draft.scope or Scope(), utc_now()
    ending = [fact for key in slot.keys if (fact := facts.find_valid(db, key, scope, moment)) is not None]
    if not ending or policy.incognito:
        return
    if not slot.is_certain or policy.suggest:
        _suggest_ending(db, draft, ending, policy)
        return
    for fact in ending:
        end_at(db, fact, moment, now)
        detail = {"until": fact.valid_to, **draft.metadata}
        audit.add(db, now, ACTOR, AuditAction.CLOSE, fact.id, detail=detail)
        # Otherwise what the fact superseded would be current again.
        for other, _ in list(_list_statements(db, fact)):
            archive_memory(db, other, now)
            audit.add(db, now, ACTOR, AuditAction.ARCHIVE, other.id, detail=dict(draft.metadata))
    changes.append(db, changes.CLOSE, [fact.id for fact in ending])


def _suggest_ending(db: Connection, draft: Draft, ending: list[Memory], policy: WritePolicy) -> None:
    """Let the sentence wait for review as a memory that contradicts the current values."""
    contradicted = tuple(EdgeDraft(EdgeKind.CONTRADICTS, fact.id) for fact in ending)
    write_all(db, [prepare(replace(draft, edges=contradicted))], replace(policy, suggest=True))


Dropped = tuple[Statement, str]


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether and how statements are captured, and whether those about the person go to their store.

    `find_branch` returns the git branch of a session's folder, None for the default branch. `is_personal_silent`
    returns whether nothing may be stored in a person's own store.
    """

    policy: WritePolicy
    is_on: bool = True
    personal: bool = True
    find_branch: Callable[[str], str | None] = lambda _folder: None
    is_personal_silent: Callable[[str | None], bool] = lambda _person: False


@dataclass(frozen=True, slots=True)
class CaptureStage:
    """Read a workspace's turns; `personal` opens a person's store to write, `find_personal` only if it exists."""

    database: Database
    personal: Callable[[str | None], Database]
    find_personal: Callable[[str | None], Database | None]
    settings: Callable[[], CaptureSettings]
    reader: StatementReader
    model: Callable[[], JobModel | None]
    encoder: Callable[[], Encoder]

    def load(self) -> None:
        """Load nothing: the language of each turn decides which classifier is needed."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Read each turn; turns whose encoder is being made are postponed."""
        settings, model = self.settings(), self.model()
        # The turns of a batch have few folders.
        settings = replace(settings, find_branch=cache(settings.find_branch))
        run_each(self.database, items, owner, lambda item: self._run(item, owner, settings, model))

    def _run(self, item: WorkItem, owner: str, settings: CaptureSettings, model: JobModel | None) -> None:
        with self.database.read() as db:
            turn = next(iter(turns.by_seqs(db, [item.seq])), None)
            # The session may be incognito since.
            is_silent = turn is None or agent_sessions.is_any_incognito(db, [turn.session_id])
        dropped: list[NearStatement] = []
        if turn is not None and turn.role is Role.USER and settings.is_on and not is_silent:
            dropped = written_by(owner_of(turn.session_id))(self._read)(turn, settings, model)
            if (person := self._find_person(turn, settings)) is not None:
                # The turn is not read again.
                person.sync_log()
        with self.database.write() as db:
            if dropped:
                near_statements.add(db, dropped)
            work.complete(db, [item], owner)

    def _read(self, turn: Turn, settings: CaptureSettings, model: JobModel | None) -> list[NearStatement]:
        """Offer the lasting statements of a turn to the store; return those that were considered and dropped."""
        with self.database.read() as db:
            exchange, folder = Exchange.read(db, turn), agent_sessions.find_folder(db, turn.session_id)
        policy = replace(settings.policy, branch=settings.find_branch(folder), author=owner_of(turn.session_id))
        settings = replace(settings, policy=policy)
        chosen, dropped = self._find_lasting(exchange, settings, model)
        dropped += self._offer(turn, chosen, settings)
        self._replace_earlier(exchange, settings)
        return [
            NearStatement(turn.seq, checksum_of(statement.sentence), statement.lasts, statement.label, reason)
            for statement, reason in dropped
        ]

    def _find_lasting(
        self, exchange: Exchange, settings: CaptureSettings, model: JobModel | None
    ) -> tuple[list[Statement], list[Dropped]]:
        """Return the statements that last, and those that were considered and dropped, with the reason."""
        turn, sentences = exchange.turn, settle_values(list_sentences(exchange.turn.content))
        if model is not None and sentences:
            message, person = "\n".join(sentences), self._find_person(turn, settings)
            statements = extract(model, message, exchange.before, read_context(self.database, person, turn, message))
            if statements is not None:
                return statements, []
        classified = self.reader.read(sentences)
        chosen = choose_lasting(classified)
        settled = [] if has_sure_command(turn.content) else find_settled(exchange, classified, chosen, self.reader.read)
        return [*drop_settled(chosen, settled), *settled], list(explain_dropped(classified, chosen))

    def _offer(self, turn: Turn, statements: Sequence[Statement], settings: CaptureSettings) -> list[Dropped]:
        """Offer statements to the store; return the rejected ones with the reason."""
        if not statements:
            return []
        with self.database.read() as db:
            if not any(stored.role is Role.USER for stored in turns.by_seqs(db, [turn.seq])):
                # The person had the turn forgotten, or took it back, while it was read.
                return []
        proposals = list(propose(turn, statements, self._list_known(turn, settings), personal=settings.personal))
        rejected: list[Dropped] = []
        for to_person in (False, True):
            offered = [
                (statement, proposal, prepare_proposal(proposal))
                for statement, proposal in zip(statements, proposals, strict=True)
                if (proposal.about_person and settings.personal) is to_person
            ]
            # What is about the person concerns no branch.
            policy = replace(settings.policy, branch=None) if to_person else settings.policy
            if offered and not (to_person and settings.is_personal_silent(policy.author)):
                # A turn that is read twice proposes nothing new: its statements are stored by then.
                with (self.personal(policy.author) if to_person else self.database).write() as db:
                    for statement, proposal, prepared in offered:
                        receipt = store_proposal(db, proposal, prepared, policy)
                        if receipt is not None and receipt.outcome is Outcome.REJECTED:
                            rejected.append((statement, receipt.reason or "rejected"))
                        elif receipt is not None and statement.updates is not None:
                            supersede_named(db, receipt, statement.updates)
        return rejected

    def _replace_earlier(self, exchange: Exchange, settings: CaptureSettings) -> None:
        """Supersede what the turn replaces or ends; what is not stored yet is stored for the history."""
        if settings.policy.suggest or settings.policy.incognito:
            return
        with self.database.read() as db:
            change = said_changes.read_change(db, exchange, self.reader.read_one)
            earlier = [] if change is None else said_changes.list_earlier(db, exchange.turn, change)
        if change and earlier and (replaced := said_changes.choose_replaced(change, earlier, self.encoder())):
            self._replace(exchange.turn, change, replaced, settings)

    def _replace(
        self, turn: Turn, change: SaidChange, replaced: Sequence[EarlierStatement], settings: CaptureSettings
    ) -> None:
        """Supersede what a change replaces, each statement in its own store."""
        text = change.restate(replaced[0].text)
        here: list[Memory | Draft] = []
        of_person: list[Memory | Draft] = []
        for old in replaced:
            if old.memory is not None:
                here.append(old.memory)
                continue
            proposal = self._propose(old.turn, old.text, settings)
            to_person = proposal.about_person and settings.personal
            (of_person if to_person else here).append(proposal.draft)
        draft, policy = self._propose(turn, text, settings).draft, settings.policy
        # What replaces a statement lasts as that one did, whatever its own words.
        draft = replace(draft, metadata={"turn": turn.seq})
        rests = list(self._list_rests(replaced, settings))
        if here:
            with self.database.write() as db:
                if not turns.by_seqs(db, [turn.seq]):
                    # The person had the turn forgotten while it was read.
                    return
                made = said_changes.find_made(db, turn)
                if made is not None and said_changes.says_less(made, change, replaced[0].text):
                    here, made = [*here, made], None
                older = said_changes.replace_all(db, replace(draft, scope=None), made, here, policy, change.starts)
                if change.starts is None:
                    said_changes.close_goals(db, older, turn.content)
                for rest in rests:
                    said_changes.store(db, rest, policy)
        if of_person and not settings.is_personal_silent(policy.author):
            with self.personal(policy.author).write() as db:
                draft = replace(draft, scope=personal_scope(policy.author))
                said_changes.replace_all(db, draft, None, of_person, replace(policy, branch=None), change.starts)

    def _list_rests(self, replaced: Sequence[EarlierStatement], settings: CaptureSettings) -> Iterator[Draft]:
        """Yield the parts that remain valid of statements that were changed in part."""
        for old in replaced:
            if old.memory is not None and is_stated(old.rest) and choose_lasting([self.reader.read_one(old.rest)]):
                yield replace(self._propose(old.turn, old.rest, settings).draft, scope=None)

    def _propose(self, turn: Turn, text: str, settings: CaptureSettings) -> Proposal:
        """Return the memory of a text that a turn states."""
        (proposal,) = propose(turn, [self.reader.read_one(text)], {}, personal=settings.personal)
        return proposal

    def _find_person(self, turn: Turn, settings: CaptureSettings) -> Database | None:
        return self.find_personal(owner_of(turn.session_id)) if settings.personal else None

    def _list_known(self, turn: Turn, settings: CaptureSettings) -> Mapping[FactKey, Any]:
        """Return the current facts of the workspace, and those about the person."""
        with self.database.read() as db:
            known = dict(list_known_values(db, Scope()))
        person = self._find_person(turn, settings)
        if person is None:
            return known
        with person.read() as db:
            # What a workspace still contains about the person is moved to their store.
            of_person = list_known_values(db, personal_scope(owner_of(turn.session_id)), USER)
        return {key: value for key, value in known.items() if key.subject != USER} | dict(of_person)


def create_stage(worker: Any, workspace_id: str) -> CaptureStage:
    """Return the stage of a workspace with the services of the worker."""
    context = worker.context(workspace_id)
    return CaptureStage(
        context.database,
        worker.create_personal,
        worker.find_personal,
        partial(worker.capture_settings, workspace_id),
        worker.statement_reader(workspace_id),
        lambda: context.model() if context.settings.capture_llm else None,
        partial(worker.encoder, workspace_id),
    )
