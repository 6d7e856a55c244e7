"""Mark what a person said earlier as superseded when a new message replaces or ends it.

The message takes effect at once. If capture did not keep it as a lasting statement, it is stored as a memory.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from sqlite3 import Connection
from typing import Final

import numpy as np

from pipeline.features.capture.change_pairs import (
    LEAST,
    LEAST_FURTHER,
    LEAST_UNKEPT,
    LONGEST,
    RESTATED,
    SaidChange,
    is_carried_out,
    is_settled,
    is_stated,
    may_change,
    read_untouched,
    split_clauses,
)
from pipeline.features.capture.exchanges import Exchange, settle_values
from pipeline.features.capture.proposals import READ_CHARS, list_sentences
from pipeline.features.capture.statement_ends import FROM_NOW, find_statement_end, find_statement_start
from pipeline.index.codes import Vector
from pipeline.index.encoder import Encoder, baseline
from pipeline.kernel.records import Draft, EdgeKind, GoalStatus, Kind, Memory, Outcome
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.store import audit, changes, edges, memories, turns
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.store.turns import Role, Turn
from pipeline.kernel.times import utc_now
from pipeline.sessions.orders.commands import has_sure_command, read_commands
from pipeline.sessions.statements import Statement
from pipeline.text.own_words import join_own_lines
from pipeline.text.sentences import says
from pipeline.write.accept import write_all
from pipeline.write.fact_placement import end_at
from pipeline.write.prepare import prepare
from pipeline.write.revise import expire

MAKER: Final = "capture"
# The newest messages that a change may be about.
MAX_MESSAGES: Final = 1_000
MAX_COMPARED: Final = 60
MAX_REPLACED: Final = 3
LEAST_ALIKE: Final = 0.5
LEAST_WORDS: Final = 3
# The first clause that is nearly as surely changed as the surest.
NEARLY_SURE: Final = 0.85
ANSWER_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class EarlierStatement:
    """A sentence that a person said, and the memory that was made of it, if any.

    `rest` is the part of a replaced statement that remains valid.
    """

    text: str
    turn: Turn
    memory: Memory | None = None
    rest: str = ""


def read_change(db: Connection, exchange: Exchange, classify: Callable[[str], Statement]) -> SaidChange | None:
    """Return what a message may change, with what was said around it that it needs; None for other messages."""
    turn = exchange.turn
    text = read_stated(turn.content)
    if not text or len(text) > LONGEST:
        return None
    starts, stated = find_statement_start(text, turn.at) or (None, text)
    if FROM_NOW not in stated and is_stated(text):
        # "Piet took over on Monday" names a day, but nothing in it is for later.
        starts, stated = None, text
    if starts is not None and find_statement_end(text, turn.at) is not None:
        # "From Thursday to Monday, Ayşe reviews": afterwards, the earlier statement is true again.
        return None
    answer = next(iter(list_sentences(exchange.after[:LONGEST])), "")
    is_done = is_carried_out(stated, answer) and SaidChange(stated).announces
    if not (is_done or is_settled(stated)) or has_sure_command(turn.content):
        return None
    if says("change", "goal_reached", answer):
        stated = f"{stated} ({answer})"
    lasts = classify(stated).lasts
    if not is_done and not may_change(stated, lasts, later=starts is not None):
        return None
    before = [said for said in turns.page(db, turn.session_id, 4, turn.seq) if said.role is not Role.TOOL]
    asked = next((said.content for said in before if said.role is Role.USER), "")
    answered = before[0].content[:ANSWER_CHARS] if before and before[0].role is Role.ASSISTANT else ""
    change = SaidChange.read(stated, lasts, " ".join(f"{asked} {answered}".split()), answer)
    return replace(change, starts=starts, said=text)


def read_stated(message: str) -> str:
    """Return the person's words; a value that a message takes back itself changes nothing before it."""
    sentences = list_sentences(message)
    settled = settle_values(sentences)
    if len(settled) < len(sentences):
        return " ".join(sentence.partition(RESTATED)[0] for sentence in settled)
    return join_own_lines(message)


def list_earlier(db: Connection, turn: Turn, change: SaidChange) -> list[EarlierStatement]:
    """List the newest statements of the person that a message may be about, latest first.

    What was replaced or forgotten is left out.
    """
    said = turns.list_said_before(db, turn.seq, MAX_MESSAGES)
    said = [other for other in said if owner_of(other.session_id) == owner_of(turn.session_id)]
    made: dict[int, list[int]] = {}
    for turn_seq, memory_seq, is_current in turns.list_made(db, [other.seq for other in said]):
        made.setdefault(turn_seq, []).extend([memory_seq] if is_current else [])
    texts = memories.list_said_texts(db, [seq for seqs in made.values() for seq in seqs])
    earlier: list[tuple[str, Turn, int | None]] = []
    for other in said:
        # Each change reads the last messages again; long ones would fill the cache with text.
        list_unkept = _list_unkept if len(other.content) <= READ_CHARS else _list_unkept.__wrapped__
        kept = [(texts[seq], seq) for seq in made.get(other.seq, ()) if seq in texts]
        earlier += [
            (text, other, seq)
            for text, seq in (
                kept if other.seq in made else ((sentence, None) for sentence in list_unkept(other.content))
            )
            if len(text.split()) >= LEAST_WORDS
            # A memory that reads like a plan or a question is compared with announced changes only.
            and (is_stated(text) or (seq is not None and change.announces))
            and change.shares_subject(text)
        ]
        if len(earlier) >= MAX_COMPARED:
            break
    stored = memories.by_seqs(db, [seq for _, _, seq in earlier if seq is not None])
    return [
        EarlierStatement(text, other, None if seq is None else stored[seq])
        for text, other, seq in earlier[:MAX_COMPARED]
    ]


@lru_cache(2 * MAX_MESSAGES)
def _list_unkept(message: str) -> Sequence[str]:
    """Return the sentences of a message of which no memory was made."""
    return () if read_commands(message) else list_sentences(message)


def choose_replaced(
    change: SaidChange, earlier: Sequence[EarlierStatement], encoder: Encoder
) -> list[EarlierStatement]:
    """Return the statements that a message surely replaces or ends, the surest first, each with its valid part."""
    # Most statements are not replaced, however similar they are: these need no vector.
    earlier = [statement for statement in earlier if change.weigh(statement.text, 1.0) >= LEAST]
    if not earlier:
        return []
    meaning, *vectors = _encode(encoder, [change.meaning, *(statement.text for statement in earlier)])
    weighed = _weigh(change, [statement.text for statement in earlier], meaning, vectors, encoder)
    first: Vector | None = None
    replaced: list[EarlierStatement] = []
    for number in sorted(range(len(earlier)), key=lambda number: -weighed[number]):
        statement, vector = earlier[number], vectors[number]
        bars = (LEAST, 0 if statement.memory is not None else LEAST_UNKEPT, 0 if first is None else LEAST_FURTHER)
        if weighed[number] < max(bars):
            continue
        # What is replaced next to the first states nearly the same: it was said twice.
        if first is not None and _compare(vector, first, encoder) < LEAST_ALIKE:
            continue
        rest = _find_untouched(change, statement.text, meaning, encoder)
        if rest is not None:
            first = vector if first is None else first
            replaced.append(replace(statement, rest=rest))
            if len(replaced) == MAX_REPLACED:
                break
    return replaced


def _find_untouched(change: SaidChange, text: str, meaning: Vector, encoder: Encoder) -> str | None:
    """Return the part of a statement that a change leaves; None if no clause of it is changed."""
    clauses = split_clauses(text)
    if len(clauses) <= 1:
        return ""
    weighed = _weigh(change, clauses, meaning, _encode(encoder, clauses), encoder)
    bar = max(LEAST, NEARLY_SURE * max(weighed))
    changed = next((clause for clause, weight in zip(clauses, weighed, strict=True) if weight >= bar), None)
    return None if changed is None else read_untouched(text, changed)


def _weigh(
    change: SaidChange, texts: Sequence[str], meaning: Vector, vectors: Iterable[Vector], encoder: Encoder
) -> list[float]:
    """Return for each text, with its vector, the probability that a change of this meaning replaces it."""
    pairs = zip(texts, vectors, strict=True)
    return [change.weigh(text, _compare(vector, meaning, encoder)) for text, vector in pairs]


def supersede(db: Connection, newer: Memory, replaced: Sequence[Memory], starts: str | None = None) -> None:
    """Mark memories as superseded by a newer one, and end keyed facts, which have a history of their own.

    If the newer one is true only from a later time on, they end at that time.
    """
    now = utc_now()
    open_seqs = {memory.seq for memory in edges.list_open_to_edges(db, [older.seq for older in replaced])}
    superseded = []
    for older in replaced:
        if older.key is not None:
            end_at(db, older, starts or newer.occurred_at, now)
            audit.add(db, now, MAKER, AuditAction.CLOSE, older.id, detail={"until": older.valid_to, **newer.metadata})
            changes.append(db, changes.CLOSE, [older.id])
        elif starts is not None:
            expire(db, older, starts, now)
        elif older.seq in open_seqs and edges.find(db, newer.seq, EdgeKind.SUPERSEDES, older.seq, MAKER, now):
            superseded.append(older.id)
    if superseded:
        changes.append_link(db, EdgeKind.SUPERSEDES, newer.id, superseded)


def replace_all(
    db: Connection,
    draft: Draft,
    made: Memory | None,
    older: Sequence[Memory | Draft],
    policy: WritePolicy,
    starts: str | None = None,
) -> list[Memory]:
    """Supersede earlier statements of a store by a new one, at a later time or at once; return their memories.

    `made` is the memory that was made of the new statement. Earlier statements that are not stored are stored for the
    history.
    """
    newer = made or store(db, draft, policy)
    if newer is None:
        return []
    written = [old if isinstance(old, Memory) else store(db, old, policy) for old in older]
    replaced = [memory for memory in written if memory is not None and memory.id != newer.id]
    supersede(db, newer, replaced, starts)
    return replaced


def find_made(db: Connection, turn: Turn) -> Memory | None:
    """Return the longest current memory that was made of a turn."""
    seqs = [memory for _, memory, is_current in turns.list_made(db, [turn.seq]) if is_current]
    return max(memories.by_seqs(db, seqs).values(), key=lambda memory: len(memory.content), default=None)


def says_less(made: Memory, change: SaidChange, older: str) -> bool:
    """Return whether the memory of a message lacks the subject or the value that its restated text has.

    "Raised to 8 in both places" does not say what is 8, "the port is switched" to which.
    """
    if "agreed" in made.metadata:
        return not SaidChange(made.content).names_subject(older)
    return change.names_subject(older) and change.restate(older) not in (change.text, change.said)


def store(db: Connection, draft: Draft, policy: WritePolicy) -> Memory | None:
    """Store a statement; return its memory, None if it is rejected or awaits review."""
    (receipt,) = write_all(db, [prepare(draft)], policy)
    return memories.get(db, receipt.id) if receipt.outcome in (Outcome.CREATED, Outcome.MERGED) else None


def close_goals(db: Connection, superseded: Sequence[Memory], message: str) -> None:
    """Mark the goals among superseded memories as done if the message says so, otherwise as dropped."""
    closed = [memory for memory in superseded if memory.kind is Kind.GOAL]
    status = GoalStatus.DONE if says("change", "reached", message) else GoalStatus.DROPPED
    for goal in closed:
        memories.update(db, goal.seq, {"details": {**goal.details, "status": status}}, utc_now())
    if closed:
        changes.append(db, changes.EDIT, [goal.id for goal in closed])


def _compare(vector: Vector, other: Vector, encoder: Encoder) -> float:
    """Return how close two vectors are, from 0, as close as unrelated texts, to 1."""
    background = baseline(encoder.background)
    return max(0.0, float((vector @ other - background) / (1 - background)))


def _encode(encoder: Encoder, texts: Sequence[str]) -> Vector:
    vectors = encoder.encode_documents(texts)
    normalized: Vector = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return normalized
