"""The capture stage: read turns once for lasting statements, and offer these to the store.

Every proposal passes admission like any other write. Statements about the person go to their own store.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.capture.model import extract
from pipeline.capture.proposals import choose_lasting, list_sentences, propose
from pipeline.capture.said_facts import list_known_values, prepare_proposal, store_proposal
from pipeline.capture.statements import Statement, StatementClassifier
from pipeline.jobs.model import JobModel
from pipeline.records import FactKey, Scope
from pipeline.records.digestion import WorkItem
from pipeline.records.people import owner_of, personal_scope
from pipeline.records.write_policy import WritePolicy
from pipeline.store import agent_sessions, turns, work
from pipeline.store.database import Database
from pipeline.store.turns import Role, Turn
from pipeline.text.personal_facts import USER


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether and how statements are captured, and whether those about the person go to their store."""

    policy: WritePolicy
    is_on: bool = True
    personal: bool = True


@dataclass(frozen=True, slots=True)
class CaptureStage:
    """Read a workspace's turns; `personal` opens a person's store to write, `find_personal` only if it exists."""

    database: Database
    personal: Callable[[str | None], Database]
    find_personal: Callable[[str | None], Database | None]
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
        who = owner_of(turn.session_id)
        proposals = list(propose(turn, statements, self._list_known(who, settings), personal=settings.personal))
        policy = replace(settings.policy, author=who)
        for to_person in (False, True):
            offered = [
                (proposal, prepare_proposal(proposal))
                for proposal in proposals
                if (proposal.about_person and settings.personal) is to_person
            ]
            if offered:
                # A turn that is read twice proposes nothing new: its statements are stored by then.
                with (self.personal(who) if to_person else self.database).write() as db:
                    for proposal, prepared in offered:
                        store_proposal(db, proposal, prepared, policy)

    def _list_known(self, who: str | None, settings: CaptureSettings) -> Mapping[FactKey, Any]:
        """Return the current facts of the workspace, and those about the person."""
        with self.database.read() as db:
            known = dict(list_known_values(db, Scope()))
        person = self.find_personal(who) if settings.personal else None
        if person is None:
            return known
        with person.read() as db:
            # What a workspace still contains about the person is moved to their store.
            of_person = list_known_values(db, personal_scope(who), USER)
        return {key: value for key, value in known.items() if key.subject != USER} | dict(of_person)
