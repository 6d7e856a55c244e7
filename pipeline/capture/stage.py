"""The capture stage: read turns once for lasting statements, and offer these to the store.

Every proposal passes admission like any other write. Statements about the person go to their own store.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from sqlite3 import Connection

from pipeline.capture.model import extract
from pipeline.capture.proposals import Proposal, choose_lasting, list_sentences, propose
from pipeline.capture.statements import Statement, StatementClassifier
from pipeline.jobs.model import JobModel
from pipeline.records import Memory, Scope
from pipeline.records.digestion import WorkItem
from pipeline.records.people import owner_of
from pipeline.records.write_policy import WritePolicy
from pipeline.store import agent_sessions, facts, turns, work
from pipeline.store.database import Database
from pipeline.store.turns import Role, Turn
from pipeline.times import utc_now
from pipeline.write.accept import commit
from pipeline.write.fact_placement import fact_key
from pipeline.write.prepare import Prepared, prepare, prepare_fact


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether and how statements are captured, and whether those about the person go to their store."""

    policy: WritePolicy
    is_on: bool = True
    personal: bool = True


@dataclass(frozen=True, slots=True)
class CaptureStage:
    """Read a workspace's turns; `personal` opens a person's store when it is needed."""

    database: Database
    personal: Callable[[str | None], Database]
    settings: Callable[[], CaptureSettings]
    classifier: Callable[[], StatementClassifier]
    model: Callable[[], JobModel | None]

    def load(self) -> None:
        """Load the classifier, if turns are to be read."""
        if self.settings().is_on:
            self.classifier()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Read each turn in a separate transaction: a worker that dies between two repeats none."""
        with self.database.read() as db:
            turns_by_seq = {turn.seq: turn for turn in turns.by_seqs(db, [item.seq for item in items])}
        settings, model = self.settings(), self.model()
        for item in items:
            turn = turns_by_seq.get(item.seq)
            if turn is not None and turn.role is Role.USER and settings.is_on and not self._is_silent(turn):
                self._offer(turn, self._find_lasting(turn, model), settings)
            with self.database.write() as db:
                work.complete(db, [item], owner)

    def _is_silent(self, turn: Turn) -> bool:
        """Return whether a session of the turn became incognito since."""
        with self.database.read() as db:
            return agent_sessions.is_any_incognito(db, [turn.session_id])

    def _find_lasting(self, turn: Turn, model: JobModel | None) -> list[Statement]:
        sentences = list_sentences(turn.content)
        if not sentences:
            return []
        if model is not None:
            with self.database.read() as db:
                before = turns.find_before(db, turn)
            statements = extract(model, "\n".join(sentences), "" if before is None else before.content)
            if statements is not None:
                return statements
        return choose_lasting(self.classifier().classify(sentences))

    def _offer(self, turn: Turn, statements: Sequence[Statement], settings: CaptureSettings) -> None:
        if not statements:
            return
        with self.database.read() as db:
            if not turns.by_seqs(db, [turn.seq]):
                # The person had the turn forgotten while it was read.
                return
            known = partial(_list_named_facts, db)
            proposals = list(propose(turn, statements, known, personal=settings.personal))
        who = owner_of(turn.session_id)
        policy = replace(settings.policy, author=who)
        for to_person in (False, True):
            offered = [
                _prepare(proposal)
                for proposal in proposals
                if (proposal.about_person and settings.personal) is to_person
            ]
            if offered:
                # A turn that is read twice proposes nothing new: its statements are stored by then.
                commit(self.personal(who) if to_person else self.database, offered, policy)


def _list_named_facts(db: Connection, text: str) -> list[Memory]:
    return facts.find_named_in(db, text, utc_now())


def _prepare(proposal: Proposal) -> Prepared:
    slot = proposal.slot
    if slot is None:
        return prepare(proposal.draft)
    details = {**proposal.draft.metadata, "said": proposal.draft.content}
    key = fact_key(slot.subject, slot.attribute)
    return prepare_fact(key, slot.value, replace(proposal.draft, metadata=details, scope=Scope()))
