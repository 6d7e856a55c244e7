"""Measure the search over sessions on public sets: whether the sessions that answer a question are among the first.

Run by `make bench-sessions ARGS="FILE ..."`. A file is LoCoMo's (`.json`), or has a store of chats a line, as
`benchmarks.quality` reads them, and may end in `.gz`. The chats are written into an archive as turns, and searched
twice: by words alone, and after the person's messages have vectors. Both speakers of LoCoMo count as persons.

FTS5 of SQLite over the same turns is the bare limit of both times.

any@k (recall_any, hit): one of the first k sessions has evidence for the question. all@k (recall_all, strict): every
session with evidence is among the first k. Questions without evidence are left out. shown: a session with evidence is
surely about the question, so that it may appear unasked. unrelated: of the questions of other stores, how many get
nothing that may appear unasked.
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
from benchmarks.homes import share_models
from benchmarks.locomo import conversations
from pipeline.features.indexing.turns_stage import embed, note_vectors
from pipeline.index.compile import compile_in_subprocess
from pipeline.index.dense import EXACT_ROWS, DenseIndex
from pipeline.index.encoder import ENGLISH, Encoder, OnnxEncoder, encoder_directory, is_compiled
from pipeline.index.vectors import VectorTable
from pipeline.kernel.store import index_state, turns
from pipeline.kernel.store.turns import Message, Role
from pipeline.recall.search_context import DenseSearch
from pipeline.sessions.search import FindDense
from pipeline.text.tokens import STOP_WORDS
from tests.fakes.archive import Archive, open_archive
from tests.fakes.in_process import folder_of

KS = (1, 5, 10)
UNRELATED = 10
# Matching turns of which the sessions are ranked by FTS5.
MOST_TURNS = 1000
FTS_QUERY = "SELECT session FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT ?"
Figures = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the sessions that answer it, and its kind."""

    text: str
    sessions: frozenset[str]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Chats:
    """The chats of a store, and what is asked about them."""

    messages: Sequence[Message]
    questions: Sequence[Question]


def read_stores(file: Path) -> Iterator[Chats]:
    """Yield the stores of a set."""
    if file.suffix == ".json":
        yield from _read_locomo(file)
        return
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for line in filter(None, content.decode().split("\n")):
        store = json.loads(line)
        session_of = {turn["id"]: chat["session"] for chat in store["sessions"] for turn in chat["turns"]}
        yield Chats(
            [_message(chat, turn) for chat in store["sessions"] for turn in chat["turns"]],
            [
                Question(asked["q"], _list_answering(asked, session_of), asked.get("category", ""))
                for asked in store["questions"]
                if asked.get("evidence")
            ],
        )


def _list_answering(asked: dict[str, Any], session_of: dict[str, str]) -> frozenset[str]:
    """Return the sessions that a set names, else those of the evidence."""
    named = asked.get("session") or [session_of[turn] for turn in asked["evidence"]]
    return frozenset([named] if isinstance(named, str) else named)


def _read_locomo(file: Path) -> Iterator[Chats]:
    for each in conversations(file):
        messages = [
            Message(said["session_id"], Role.USER, said["content"], said["occurred_at"]) for said in each.memories
        ]
        asked = [
            Question(one.text, frozenset(messages[source].session_id for source in one.sources), one.kind)
            for one in each.questions
        ]
        yield Chats(messages, asked)


def _message(chat: dict[str, Any], turn: dict[str, Any]) -> Message:
    role = Role.ASSISTANT if turn["speaker"] == "assistant" else Role.USER
    return Message(chat["session"], role, turn["text"], turn.get("at") or chat["at"])


def measure(stores: Sequence[Chats], encoder: Encoder) -> dict[str, float]:
    """Return the figures of a set."""
    figures: Figures = defaultdict(list)
    for store in stores:
        others = [asked for other in stores if other is not store for asked in other.questions]
        others = random.Random(1).sample(others, min(UNRELATED, len(others)))
        with open_archive() as archive:
            with archive.database.write() as db:
                turns.add(db, store.messages)
            began = time.perf_counter()
            archive.fold()
            figures["turns/s indexed"].append(len(store.messages) / (time.perf_counter() - began))
            _ask_fts(store, figures)
            _ask(archive, store.questions, others, figures, "words")
            archive.find_dense = _embed(archive, encoder)
            _ask(archive, store.questions, others, figures, "words and meaning")
    return {name: mean(values) for name, values in figures.items()}


def mean(values: Sequence[float]) -> float:
    """Return the mean of some figures, 0 without any."""
    return statistics.fmean(values) if values else 0.0


def _embed(archive: Archive, encoder: Encoder) -> FindDense:
    """Embed the messages of persons; return the search over their vectors."""
    with archive.database.read() as db:
        texts = turns.list_embedded_texts(db, turns.all_seqs(db))
    table = VectorTable(folder_of(archive.database) / "turn_vectors", encoder.name, encoder.dimension)
    with table.exclusive(), archive.database.write() as db:
        table.replace(embed(texts, encoder))
        note_vectors(db, table.model, removed=False)
    dense = DenseSearch(encoder, DenseIndex(table, EXACT_ROWS, encoder.background))
    return lambda _model: dense


def _ask(
    archive: Archive, questions: Sequence[Question], others: Sequence[Question], figures: Figures, ranking: str
) -> None:
    for asked in questions:
        began = time.perf_counter()
        hits = archive.search(asked.text, limit=max(KS))
        figures[f"{ranking}, ms"].append(1000 * (time.perf_counter() - began))
        _judge(asked, [hit.session_id for hit in hits], figures, ranking)
        figures[f"{ranking}, shown"].append(any(hit.is_relevant and hit.session_id in asked.sessions for hit in hits))
    for asked in others:
        figures[f"{ranking}, unrelated"].append(not archive.search(asked.text, relevant_only=True))


def _judge(asked: Question, found: Sequence[str], figures: Figures, ranking: str) -> None:
    for k in KS:
        figures[f"{ranking}, any@{k}"].append(not asked.sessions.isdisjoint(found[:k]))
        figures[f"{ranking}, all@{k}"].append(asked.sessions <= set(found[:k]))


def _ask_fts(store: Chats, figures: Figures) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE turn USING fts5 (session UNINDEXED, text, tokenize = 'porter unicode61')")
    began = time.perf_counter()
    db.executemany("INSERT INTO turn VALUES (?, ?)", [(said.session_id, said.content) for said in store.messages])
    figures["turns/s indexed by FTS5"].append(len(store.messages) / (time.perf_counter() - began))
    for asked in store.questions:
        began = time.perf_counter()
        rows = db.execute(FTS_QUERY, (match_words(asked.text), MOST_TURNS)).fetchall()
        figures["FTS5, ms"].append(1000 * (time.perf_counter() - began))
        _judge(asked, list(dict.fromkeys(session for (session,) in rows)), figures, "FTS5")
    db.close()


def match_words(text: str) -> str:
    """Return a text's words as a query of FTS5, without stop words."""
    words = dict.fromkeys(word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS)
    return " OR ".join(f'"{word}"' for word in words) or '""'


# The figure that is the bare limit of another.
LIMITS = {"words, ms": "FTS5, ms", "turns/s indexed": "turns/s indexed by FTS5"}


def main() -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    report = Report()
    # A segment is built of any number of turns.
    index_state.MOST_TAIL_TURNS = 1
    models = share_models()
    if not is_compiled(ENGLISH, models):
        compile_in_subprocess(ENGLISH, models)
    encoder = OnnxEncoder.load(encoder_directory(ENGLISH, models), threads=1)
    for file in parser.parse_args().files:
        stores = list(read_stores(file))
        asked = sum(len(store.questions) for store in stores)
        report.section(f"{file.name}: {len(stores)} stores, {asked} questions")
        figures = measure(stores, encoder)
        for name, value in figures.items():
            limit = Limit("FTS5", figures[LIMITS[name]]) if name in LIMITS else None
            report.row(name, f"{value:.3f}", against=None if limit is None else (limit, value))


if __name__ == "__main__":
    main()
