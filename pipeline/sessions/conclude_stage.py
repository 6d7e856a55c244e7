"""The conclude stage: extract what a session concluded, and link it to what it replaces.

A session is concluded after its last message, and again when it continues.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.capture.statements import Statement, StatementClassifier
from pipeline.digest.stage_loop import PENDING_S
from pipeline.errors import EncoderPending
from pipeline.records.digestion import WorkItem
from pipeline.sessions.amendments import Subjects, follow_chain, list_replaced
from pipeline.sessions.conclusions import Found, conclude
from pipeline.sessions.topics import describe_topic
from pipeline.store import agent_sessions, conclusions, turns, work
from pipeline.store.conclusions import Conclusion, NewConclusion
from pipeline.store.database import Database
from pipeline.store.turns import Role, Turn
from pipeline.text.instructions import instructs

# The last turns of a longer session are read.
READ_TURNS = 400
# A session is compared with the last sessions, to find what it replaces and what replaces it.
COMPARED = 5_000


@dataclass(frozen=True, slots=True)
class ConcludeStage:
    """Conclude the sessions of a workspace's turns."""

    database: Database
    # The classifier of the sentences of a text, by its language.
    classifier: Callable[[str], StatementClassifier]

    def load(self) -> None:
        """Load nothing: most sessions are concluded without an encoder."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Conclude the session of each turn in a separate transaction; postpone it while an encoder is made."""
        with self.database.read() as db:
            subjects = Subjects(conclusions.list_mains(db, COMPARED))
        for item in items:
            try:
                self._conclude(item, owner, subjects)
            except EncoderPending:
                with self.database.write() as db:
                    work.postpone(db, [item], owner, time.time() + PENDING_S)

    def _conclude(self, item: WorkItem, owner: str, subjects: Subjects) -> None:
        with self.database.read() as db:
            first = turns.by_seqs(db, [item.seq])
            session_id = first[0].session_id if first else None
            read = [] if session_id is None else _read_turns(db, session_id)
        found = conclude(read, self._classify)
        new = _describe(read, found)
        with self.database.write() as db:
            # A turn may have been deleted since, and a session that continued is concluded again.
            if session_id is not None and turns.by_seqs(db, [turn.seq for turn in read]) == read:
                link(db, conclusions.replace(db, session_id, new), subjects)
            work.complete(db, [item], owner)

    def _classify(self, sentences: Sequence[str]) -> list[Statement]:
        return self.classifier(" ".join(sentences)).classify(sentences)


def link(db: Connection, stored: Sequence[Conclusion], subjects: Subjects) -> None:
    """Record what the conclusions of a session replace, and which later ones replace them."""
    if not stored:
        return
    subject = subjects.put(stored[0])
    related = {"earlier": subjects.find_earlier(subject), "later": subjects.find_later(subject)}
    by_session: dict[str, list[Conclusion]] = {}
    for conclusion in conclusions.list_of_sessions(
        db, {other.conclusion.session_id for others in related.values() for other in others}
    ):
        by_session.setdefault(conclusion.session_id, []).append(conclusion)
    pairs: list[tuple[int, int]] = []
    for other in related["earlier"]:
        group = by_session.get(other.conclusion.session_id, [])
        pairs += list_replaced(group, stored)
        # Another decision between the two may replace it already.
        pairs += [(one.seq, one.superseded_by) for one in group if one.superseded_by is not None]
    for other in related["later"]:
        if other.conclusion.session_id in by_session:
            pairs += list_replaced(stored, by_session[other.conclusion.session_id])
    known = conclusions.by_seqs(db, {seq for pair in pairs for seq in pair})
    at = {conclusion.seq: conclusion.at for conclusion in known}
    conclusions.supersede(db, follow_chain([pair for pair in pairs if at.keys() >= set(pair)], at).items())


def _read_turns(db: Connection, session_id: str) -> list[Turn]:
    """Return the messages of a session in order; none if it is incognito."""
    if agent_sessions.is_any_incognito(db, [session_id]):
        return []
    page = turns.page(db, session_id, READ_TURNS, None)
    return [turn for turn in reversed(page) if turn.role in (Role.USER, Role.ASSISTANT)]


def _describe(read: Sequence[Turn], found: Sequence[Found]) -> list[NewConclusion]:
    """Return the conclusions to store, those of the agent's last recap first; leave out text that gives orders."""
    by_seq = {turn.seq: turn for turn in read}
    harmless = [one for one in found if not instructs(one.content)]
    topic = describe_topic(read, [one.content for one in harmless])
    order = sorted(harmless, key=lambda one: (by_seq[one.turn_seq].role is Role.USER, -one.turn_seq))
    return [
        NewConclusion(
            by_seq[one.turn_seq].session_id, one.turn_seq, one.kind, one.content, topic, by_seq[one.turn_seq].at
        )
        for one in order
    ]
