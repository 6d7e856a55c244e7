"""Measure the search over sessions on public sets: whether the session that answers a question is among the first.

Run by `make bench-sessions ARGS="FILE ..."`. A file has a store of chats a line, as `benchmarks.quality` reads
them, and may end in `.gz`. The chats are written into an archive as turns; no model takes part.

FTS5 of SQLite over the same turns is the bare limit of both times.

hit@k: one of the first k sessions has evidence for the question. shown: it is surely about the question, so that it may
appear unasked. unrelated: of the questions of other stores, how many get nothing that may appear unasked.
"""

import argparse
import gzip
import json
import random
import re
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Limit, Report
from pipeline.store import index_state, turns
from pipeline.store.turns import Message, Role
from tests.fakes.archive import Archive, open_archive

KS = (1, 5, 10)
UNRELATED = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the sessions that answer it."""

    text: str
    sessions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Chats:
    """The chats of a store, and what is asked about them."""

    messages: Sequence[Message]
    questions: Sequence[Question]


def read_stores(file: Path) -> Iterator[Chats]:
    """Yield the stores of a set."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for line in filter(None, content.decode().split("\n")):
        store = json.loads(line)
        session_of = {turn["id"]: chat["session"] for chat in store["sessions"] for turn in chat["turns"]}
        yield Chats(
            [_message(chat, turn) for chat in store["sessions"] for turn in chat["turns"]],
            [
                Question(asked["q"], frozenset(session_of[turn] for turn in asked["evidence"]))
                for asked in store["questions"]
                if asked.get("evidence")
            ],
        )


def _message(chat: dict[str, Any], turn: dict[str, Any]) -> Message:
    role = Role.ASSISTANT if turn["speaker"] == "assistant" else Role.USER
    return Message(chat["session"], role, turn["text"], turn.get("at") or chat["at"])


def measure(stores: Sequence[Chats]) -> dict[str, float]:
    """Return the figures of a set."""
    figures: dict[str, list[float]] = defaultdict(list)
    for store in stores:
        others = [asked for other in stores if other is not store for asked in other.questions]
        with open_archive() as archive:
            with archive.database.write() as db:
                turns.add(db, store.messages)
            began = time.perf_counter()
            archive.fold()
            figures["turns/s indexed"].append(len(store.messages) / (time.perf_counter() - began))
            _ask(archive, store.questions, figures)
            _ask_fts(store, figures)
            for asked in random.Random(1).sample(others, min(UNRELATED, len(others))):
                figures["unrelated"].append(not archive.search(asked.text, relevant_only=True))
    return {name: statistics.fmean(values) for name, values in figures.items()}


def _ask(archive: Archive, questions: Sequence[Question], figures: dict[str, list[float]]) -> None:
    for asked in questions:
        began = time.perf_counter()
        hits = archive.search(asked.text, limit=max(KS))
        figures["ms"].append(1000 * (time.perf_counter() - began))
        found = [hit.session_id in asked.sessions for hit in hits]
        for k in KS:
            figures[f"hit@{k}"].append(any(found[:k]))
        figures["shown"].append(any(hit.is_relevant and hit.session_id in asked.sessions for hit in hits))


def _ask_fts(store: Chats, figures: dict[str, list[float]]) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE turn USING fts5 (text, tokenize = 'porter unicode61')")
    began = time.perf_counter()
    db.executemany("INSERT INTO turn VALUES (?)", [(message.content,) for message in store.messages])
    figures["turns/s indexed by FTS5"].append(len(store.messages) / (time.perf_counter() - began))
    for asked in store.questions:
        words = dict.fromkeys(re.findall(r"\w+", asked.text.lower()))
        match = " OR ".join(f'"{word}"' for word in words) or '""'
        began = time.perf_counter()
        db.execute("SELECT rowid FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT ?", (match, max(KS))).fetchall()
        figures["ms of FTS5"].append(1000 * (time.perf_counter() - began))
    db.close()


# The figure that is the bare limit of another.
LIMITS = {"ms": "ms of FTS5", "turns/s indexed": "turns/s indexed by FTS5"}


def main() -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    report = Report()
    # A segment is built of any number of turns.
    index_state.MOST_TAIL_TURNS = 1
    for file in parser.parse_args().files:
        stores = list(read_stores(file))
        asked = sum(len(store.questions) for store in stores)
        report.section(f"{file.name}: {len(stores)} stores, {asked} questions")
        figures = measure(stores)
        for name, value in figures.items():
            limit = Limit("FTS5", figures[LIMITS[name]]) if name in LIMITS else None
            report.row(name, f"{value:.3f}", against=None if limit is None else (limit, value))


if __name__ == "__main__":
    main()
