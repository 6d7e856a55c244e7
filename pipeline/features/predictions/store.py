"""Past queries, predicted queries, and how often the predictions were right.

A query that was asked on one occasion is stored only as a fingerprint: its text is stored once it is asked on another
occasion, and deleted with the first purge of a memory.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.records import EntityKind, Filter
from pipeline.kernel.store import ingested
from pipeline.kernel.store.rows import DELETE, Table, find_row, list_rows
from pipeline.kernel.store.visibility import condition
from pipeline.kernel.times import parse

# A repetition within this time belongs to the same occasion.
OCCASION = timedelta(hours=1)
MAX_QUESTION_CHARS = 200
MOST_KEPT = 1000
LAST_WRITTEN = 2000
_FINGERPRINT = "#"


class Reason(StrEnum):
    """The reason for a prediction."""

    REPEATED = "repeated"
    GOAL = "goal"
    ARC = "arc"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted query, literally, and the reason."""

    query: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class RepeatedQuery:
    """A query, the number of occasions on which it was asked, and the start of the last one."""

    text: str
    times: int
    last_at: str


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """The answers to a predicted query as JSON, and a fingerprint of the state of the store that they are valid in."""

    state: str
    answers: str


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """The number of queries, how many of them were predicted, and how many were answered by a stored answer."""

    asked: int
    foreseen: int
    answered: int = 0

    @property
    def hit_rate(self) -> float | None:
        """Return the predicted share of the queries, None without queries."""
        return self.foreseen / self.asked if self.asked else None


def replace(db: Connection, predictions: Sequence[Prediction], at: str) -> None:
    """Replace all predictions, the likeliest first."""
    db.execute("DELETE FROM prediction")
    db.executemany(
        "INSERT INTO prediction (query, reason, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(prediction.query, prediction.reason, at) for prediction in predictions],
    )


def list_predictions(db: Connection) -> list[Prediction]:
    """List the predictions, the likeliest first."""
    return [
        Prediction(query, Reason(r)) for query, r in db.execute("SELECT query, reason FROM prediction ORDER BY seq")
    ]


def list_states(db: Connection) -> dict[str, str | None]:
    """Return the state of the stored answers by predicted query, the likeliest first; None without answers."""
    return dict(db.execute("SELECT query, state FROM prediction ORDER BY seq").fetchall())


def put_answers(db: Connection, query: str, stored: StoredAnswers) -> None:
    """Store the answers to a predicted query."""
    db.execute("UPDATE prediction SET state = ?, answers = ? WHERE query = ?", (stored.state, stored.answers, query))


def find_answers(db: Connection, query: str) -> StoredAnswers | None:
    """Return the stored answers to a query, None if there are none."""
    return find_row(
        db, StoredAnswers, "SELECT state, answers FROM prediction WHERE query = ? AND state IS NOT NULL", (query,)
    )


def note(
    db: Connection, query_count: int, texts: Mapping[str, int], at: str, answered_count: int = 0
) -> PredictionScore:
    """Count queries, and those that were predicted; `texts` are the queries that may be stored, with their counts.

    `answered_count` is how many were answered by a stored answer.
    """
    likely = {query for (query,) in db.execute("SELECT query FROM prediction")}
    foreseen_count = sum(times for text, times in texts.items() if text in likely)
    score = PredictionScore(query_count, foreseen_count, answered_count)
    db.execute(
        "INSERT INTO prediction_day (day, asked, foreseen, answered) VALUES (?, ?, ?, ?) ON CONFLICT (day) DO UPDATE "
        "SET asked = prediction_day.asked + excluded.asked, foreseen = prediction_day.foreseen + excluded.foreseen, "
        "answered = prediction_day.answered + excluded.answered",
        (at[:10], score.asked, score.foreseen, score.answered),
    )
    for text in texts:
        _keep(db, text, at)
    db.execute(
        "DELETE FROM query WHERE text IN (SELECT text FROM query ORDER BY last_at DESC, text LIMIT ? OFFSET ?)",
        (2**62, MOST_KEPT),
    )
    return score


def _keep(db: Connection, text: str, at: str) -> None:
    fingerprint = _fingerprint(db, text)
    row = db.execute(
        "SELECT text, last_at FROM query WHERE text IN (?, ?) ORDER BY text = ? DESC", (text, fingerprint, text)
    ).fetchone()
    if row is None:
        db.execute("INSERT INTO query VALUES (?, 1, ?, ?)", (fingerprint, at, at))
    elif parse(at) - parse(row[1]) >= OCCASION:
        db.execute("UPDATE query SET text = ?, times = times + 1, last_at = ? WHERE text = ?", (text, at, row[0]))


def _fingerprint(db: Connection, text: str) -> str:
    key = ingested.mark_key(db).encode()
    return _FINGERPRINT + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()


def list_repeated_queries(db: Connection, since: str) -> list[RepeatedQuery]:
    """List queries that were asked on several occasions, the last of them since a time; most often first."""
    return list_rows(
        db,
        RepeatedQuery,
        "SELECT text, times, last_at FROM query WHERE times > 1 AND last_at >= ? "
        "ORDER BY times DESC, last_at DESC, text",
        (since,),
    )


def recent_names(db: Connection, since: str, without: Sequence[EntityKind], least: int, limit: int) -> list[str]:
    """List names that at least `least` memories since a time mention, most often first.

    Only the last written memories that are visible in the entire workspace are considered.
    """
    clause, values = condition(Filter())
    return list_rows(
        db,
        str,
        "WITH last (seq) AS (SELECT seq FROM memory WHERE "  # noqa: S608 - constant text
        f"{clause} AND seq > (SELECT max(seq) FROM memory) - ? AND occurred_at >= ?) "
        "SELECT min(e.name) FROM last JOIN mention m ON m.memory_seq = last.seq JOIN entity e ON e.seq = m.entity_seq "
        "WHERE e.kind NOT IN (SELECT value FROM json_each(?)) "
        "GROUP BY e.seq HAVING count(*) >= ? ORDER BY count(*) DESC, max(last.seq) DESC, e.seq LIMIT ?",
        (*values, LAST_WRITTEN, since, json.dumps(without), least, limit),
    )


def score(db: Connection, since_day: str) -> PredictionScore:
    """Return the results of predictions since a day (`2026-11-21`)."""
    totals = "coalesce(sum(asked), 0), coalesce(sum(foreseen), 0), coalesce(sum(answered), 0)"
    counted = f"SELECT {totals} FROM prediction_day WHERE day >= ?"  # noqa: S608 - constant text
    return find_row(db, PredictionScore, counted, (since_day,)) or PredictionScore(0, 0)


def forget_days(db: Connection, before_day: str) -> None:
    """Delete the results of predictions before a day."""
    db.execute("DELETE FROM prediction_day WHERE day < ?", (before_day,))


def forget_all(db: Connection) -> None:
    """Delete all predictions and queries."""
    db.execute("DELETE FROM prediction")
    db.execute("DELETE FROM query")


# Any question may paraphrase any memory.
TABLES = (
    Table(
        "prediction",
        text=("query", "reason", "answers"),
        erasure=DELETE,
        quoting={"query": DELETE},
        is_per_scope=True,
    ),
    Table("query", ("text",), text=("text",), erasure=DELETE, quoting={"text": DELETE}, is_per_scope=True),
    Table("prediction_day", ("day",)),
)
