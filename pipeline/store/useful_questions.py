"""The questions that memories were useful for: memories that a person opened, confirmed or followed after a question.

Of a question, only keyed hashes of its rarest terms are stored. A person's questions affect only their own results.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.store import meta

# The person is the owner of the data directory.
OWNER = ""
MAX_TERMS = 8
MAX_QUESTIONS_PER_MEMORY = 8
MAX_QUESTIONS = 2000


@dataclass(frozen=True, slots=True)
class SharedTerm:
    """A term of a new question that an earlier one contained, for which a memory was useful.

    `share` is the term's share of the earlier question, by rarity.
    """

    memory_seq: int
    question: int
    term: str
    share: float


def add(db: Connection, memory_seq: int, person: str | None, terms: Mapping[str, float], at: str) -> None:
    """Record that a memory was useful for a question with some rare terms; the rarest are kept."""
    kept = dict(sorted(terms.items(), key=lambda item: -item[1])[:MAX_TERMS])
    is_there = db.execute("SELECT 1 FROM memory WHERE seq = ?", (memory_seq,)).fetchone()
    if not kept or is_there is None:
        return
    hashes, total = _hash(db, kept), sum(kept.values())
    question = _digest(json.dumps(sorted(hashes.values())), b"")
    db.executemany(
        "INSERT INTO useful_term (person, term, question, memory_seq, share, at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (person, term, question, memory_seq) DO UPDATE SET at = excluded.at",
        [(person or OWNER, hashes[term], question, memory_seq, kept[term] / total, at) for term in kept],
    )
    _trim(db, person or OWNER, memory_seq)


def _trim(db: Connection, person: str, memory_seq: int) -> None:
    """Delete the oldest questions above the limits."""
    for column, value, limit in (
        ("memory_seq", memory_seq, MAX_QUESTIONS_PER_MEMORY),
        ("person", person, MAX_QUESTIONS),
    ):
        oldest = db.execute(
            f"SELECT question, memory_seq FROM useful_term WHERE person = ? AND {column} = ? "  # noqa: S608 - constant text
            "GROUP BY question, memory_seq ORDER BY max(at) DESC, question LIMIT ? OFFSET ?",
            (person, value, 2**31, limit),
        ).fetchall()
        db.executemany(
            "DELETE FROM useful_term WHERE person = ? AND question = ? AND memory_seq = ?",
            [(person, question, seq) for question, seq in oldest],
        )


def is_any(db: Connection, person: str | None) -> bool:
    """Return whether any memory was useful for a question of a person."""
    return db.execute("SELECT 1 FROM useful_term WHERE person = ? LIMIT 1", (person or OWNER,)).fetchone() is not None


def list_shared_terms(db: Connection, person: str | None, terms: Collection[str]) -> list[SharedTerm]:
    """List the terms that a new question shares with a person's earlier ones, in a fixed order."""
    names = {term_hash: term for term, term_hash in _hash(db, terms).items()}
    rows = db.execute(
        "SELECT memory_seq, question, term, share FROM useful_term WHERE person = ? "
        "AND term IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY memory_seq, question, term",
        (person or OWNER, json.dumps(list(names))),
    )
    return [SharedTerm(seq, question, names[term], float(share)) for seq, question, term, share in rows]


def count(db: Connection, person: str | None) -> int:
    """Count the questions of a person for which a memory was useful, once per memory."""
    pairs = "SELECT 1 FROM useful_term WHERE person = ? GROUP BY question, memory_seq"
    return int(db.execute(f"SELECT count(*) FROM ({pairs}) pairs", (person or OWNER,)).fetchone()[0])  # noqa: S608 - constant text


def forget(db: Connection, person: str | None) -> int:
    """Delete the questions of a person; return their number, counted once per memory."""
    known = count(db, person)
    db.execute("DELETE FROM useful_term WHERE person = ?", (person or OWNER,))
    return known


def forget_since(db: Connection, at: str) -> None:
    """Delete the questions since a time."""
    db.execute("DELETE FROM useful_term WHERE at >= ?", (at,))


def purge(db: Connection, memory_seq: int, terms: Iterable[str]) -> None:
    """Delete the questions that a memory was useful for, and those that share a term with its text."""
    hashes = list(_hash(db, set(terms)).values())
    db.execute("DELETE FROM useful_term WHERE memory_seq = ?", (memory_seq,))
    db.execute(
        "DELETE FROM useful_term WHERE question IN (SELECT question FROM useful_term "
        "WHERE term IN (SELECT CAST(value AS BIGINT) FROM json_each(?)))",
        (json.dumps(hashes),),
    )


def _hash(db: Connection, terms: Iterable[str]) -> dict[str, int]:
    key = (meta.get(db, meta.NODE) or "").encode()
    return {term: _digest(term, key) for term in terms}


def _digest(text: str, key: bytes) -> int:
    """Return a hash that fits a signed integer of 64 bits."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
