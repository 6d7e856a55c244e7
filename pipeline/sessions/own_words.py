"""Find the messages of earlier sessions that a prompt needs: what the person said is a source by itself.

A message is scored as a whole, because its sentences explain each other: by its meaning, by the rare words that it
shares with the prompt, and by the activities that both are about. It needs no capture; a message of which a current
memory was made counts a little more. The store decides what may be shown: it knows what was replaced or deleted.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection

import numpy as np

from pipeline.index.activity_vectors import load_activities
from pipeline.index.encoder import MULTILINGUAL
from pipeline.index.lexical import YOUNG_WORKSPACE_SIZE, LexicalScores
from pipeline.index.row_arrays import Floats, Seqs, values_at
from pipeline.kernel.records import Filter, Memory
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import memories, turns
from pipeline.kernel.store.turns import FoundTurn
from pipeline.recall.query import parse_query
from pipeline.recall.search_context import SearchContext
from pipeline.sessions.intake import list_refusals
from pipeline.sessions.orders.commands import read_commands
from pipeline.sessions.search import search_turn_vectors
from pipeline.text.messages import is_small_talk
from pipeline.text.own_words import join_own_lines
from pipeline.text.sentences import QUESTION_MARKS

# Chosen on the labelled days of two developers (decision 0079): the bar leaves one line per prompt.
INFORMATION = 0.2
# The multilingual encoder puts texts of one subject less close to each other, so that activities count more.
ACTIVITY, ACTIVITY_MULTILINGUAL = 0.25, 0.5
MADE_A_MEMORY = 0.1
BAR = 0.55
# Messages below the bar that are returned, so that a person sees why they were left out.
NEAR_MISSES = 2
NEAR_BACKGROUND = 0.05
# A message with fewer words rarely makes sense in another session.
LEAST_WORDS = 4
# Messages of the person that are compared, the newest.
COMPARED = 20_000
COMPARED_BY_ACTIVITY = 100
# Messages that are read from the store for each one that is shown.
READ_EACH = 8

# An order to forget something, behind a few words at most: it is no statement, whether or not it was understood.
_FORGETS = re.compile(
    r"(?:[\w'’ ]{1,24}[,.!:]\s+)?(?:(?:ok|okay|oh|and|so|please|pls|plz|just|also|actually|now|bitte|und|ach|y|"
    r"por favor|et|stp|e|per favore)[,!]?\s+)*(?:(?:can|could|would|will) you|kannst du|könntest du|puedes|peux-tu|"
    r"puoi)?\s*"
    r"(?:please |pls |just |bitte )*(?:forget|disregard|vergiss|vergesst|vergessen|olvida\w*|olvídate|oublie[rz]?|"
    r"dimentica\w*|esque[çc]\w*|vergeet)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OwnMessage:
    """What a person said in an earlier session, its score, and the memories that were made of it and are current."""

    turn_seq: int
    at: str
    text: str
    score: float
    memories: tuple[Memory, ...] = ()


def find_own_messages(
    context: SearchContext, session: AgentSession, prompt: str, now: datetime, limit: int
) -> list[OwnMessage]:
    """Return the messages of other sessions that a prompt needs, best first, and a few below the bar; none for thanks.

    Raises IndexUnavailable if the index of turns cannot be read.
    """
    if is_small_talk(prompt):
        return []
    dense, encoder = search_turn_vectors(context.database, prompt, context.turn_dense)
    if dense is None or encoder is None:
        return []
    activity = ACTIVITY_MULTILINGUAL if encoder.name == MULTILINGUAL else ACTIVITY
    with context.database.read() as db:
        words = context.turns.lexical.search(db, parse_query(prompt, now).tokens)
        rows = np.flatnonzero(context.turns.sessions.by_person)[-COMPARED:]
        closeness, words_shared = dense.closeness(dense.of(rows)), _score_words(words, rows)
        scores = closeness + words_shared
        # No activity lifts the others above the bar.
        possible = scores >= BAR - activity - MADE_A_MEMORY
        # Without a common word, a message must be nearly as close as the nearest of all general messages.
        possible &= (words_shared > 0) | (closeness > dense.background_similarity - NEAR_BACKGROUND)
        best = np.flatnonzero(possible)
        best = best[np.argsort(-scores[best], kind="stable")][:COMPARED_BY_ACTIVITY]
        rows, scores = rows[best], scores[best]
        if not len(rows):
            return []
        activities = load_activities(encoder).compare(dense.query, dense.vectors.first_passages(rows))
        return _list_best(db, session, rows, scores + activity * activities, limit)


def _score_words(words: LexicalScores, rows: Seqs) -> Floats:
    """Return the information of the words that messages share with a prompt, whatever the number of messages."""
    size = max(words.corpus.count, YOUNG_WORKSPACE_SIZE)
    scores: Floats = (INFORMATION / math.log1p(size) * values_at(words.information, rows)).astype(np.float32)
    return scores


def _list_best(db: Connection, session: AgentSession, rows: Seqs, scores: Floats, limit: int) -> list[OwnMessage]:
    """Return the best messages that may be shown and state something."""
    order = np.argsort(-scores, kind="stable")
    best = rows[order][: READ_EACH * limit].tolist()
    candidates = turns.list_found(db, best, session.viewer.person, only_normal=True)
    candidates = {seq: turn for seq, turn in candidates.items() if turn.session_id != session.id and _states(turn)}
    made: dict[int, list[int]] = {}
    replaced: set[int] = set()
    for turn, memory, is_current in turns.list_made(db, candidates):
        made.setdefault(turn, []).append(memory)
        if not is_current:
            replaced.add(turn)
    score_of = {
        seq: score + MADE_A_MEMORY * (seq in made)
        for seq, score in zip(rows.tolist(), scores.tolist(), strict=True)
        if seq in candidates and seq not in replaced
    }
    ranked = sorted(score_of, key=lambda seq: -score_of[seq])
    above = sum(score >= BAR for score in score_of.values())
    chosen = ranked[: min(limit, above + NEAR_MISSES)]
    # Said again after it was forgotten or rejected, it is still unwanted.
    chosen = [seq for seq in chosen if not list_refusals(db, candidates[seq].content)]
    seqs = [memory for seq in chosen for memory in made.get(seq, ())]
    shown = memories.filter_showable(db, seqs, Filter(viewer=session.viewer))
    return [
        _own_message(candidates[seq], score_of[seq], [shown[memory] for memory in made.get(seq, ()) if memory in shown])
        for seq in chosen
    ]


def _states(turn: FoundTurn) -> bool:
    """Return whether a message states something, so that it may matter in another session."""
    text = join_own_lines(turn.content)
    if text.endswith(QUESTION_MARKS) or len(text.split()) < LEAST_WORDS or _FORGETS.match(text) is not None:
        return False
    return not read_commands(turn.content)


def _own_message(turn: FoundTurn, score: float, made: Sequence[Memory]) -> OwnMessage:
    return OwnMessage(turn.seq, turn.at, join_own_lines(turn.content), score, tuple(made))
