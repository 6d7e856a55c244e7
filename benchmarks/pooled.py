"""Measure the search over one large archive: all sessions of a set, imported as transcripts of Claude Code.

Run by `make bench-pooled ARGS="FILE ..."`. `benchmarks/sessions.py` describes the format of a file; LongMemEval-S has
48 sessions for each question, so a question is answered among the sessions of all others.

The transcripts are imported by `reverie import sessions` into one workspace while the stack runs. Each question is
asked of `GET /v1/sessions/search`: as soon as the import has ended, when few messages have vectors, and again after all
messages of the person have them. hit@k: one of the first k sessions has evidence for the question.

searchable: the seconds from the start of the import until nearly all of some sessions are found by their first message.
FTS5 is SQLite's full text search over the same sessions, without stop words, ranked by BM25.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.figures import Aim, Latency, Limit, Report, latency
from benchmarks.homes import share_models, stack_on
from benchmarks.sessions import Question, match_words, mean, read_stores
from demo.sample import Session
from demo.transcripts import write_transcript
from pipeline.kernel.store.turns import Message, Role
from tests.support.stack import ROOT, Client, Stack, wait_until

KS = (1, 5, 10, 50)
PROBES = 50
PROBE_CHARS = 200
# Of a few probes, another session has the same first message.
FOUND_SHARE = 0.95
SEARCHABLE_WITHIN_S = 3600.0
EMBEDDED_WITHIN_S = 6 * 3600.0
AIMS = {"hit@1": 0.36, "hit@5": 0.6}

Sessions = Mapping[str, Sequence[Message]]
Ask = Callable[[str], Sequence[str]]


def pool(files: Sequence[Path]) -> tuple[dict[str, list[Message]], list[Question]]:
    """Return the distinct sessions of all stores, the oldest first, and all questions."""
    sessions: dict[str, list[Message]] = {}
    questions: dict[str, Question] = {}
    for store in (store for file in files for store in read_stores(file)):
        chats = defaultdict(list)
        for message in store.messages:
            chats[message.session_id].append(message)
        sessions = chats | sessions
        questions |= {asked.text: asked for asked in store.questions}
    return dict(sorted(sessions.items(), key=lambda item: item[1][0].at)), list(questions.values())


def write_transcripts(sessions: Sessions, home: Path, folder: Path) -> int:
    """Write sessions as transcripts of a user who worked in a folder; return their bytes."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for name, messages in sessions.items():
        entries = [("user" if said.role is Role.USER else "agent", said.content) for said in messages]
        start = datetime.fromisoformat(messages[0].at)
        write_transcript(home, folder, Session(name, None, start, entries))
    return sum(file.stat().st_size for file in home.rglob("*.jsonl"))


def run_import(stack: Stack, home: Path) -> dict[str, Any]:
    """Import all transcripts of a user, and return the answer of the command."""
    command = [sys.executable, "-m", "web.cli", "--json", "import", "sessions"]
    environment = stack.environment | {"HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def ask_all(questions: Sequence[Question], ask: Ask) -> tuple[dict[str, list[float]], Latency]:
    """Return the results of questions, over all and by their kind, and how long the answers took."""
    results, took = defaultdict(list), []
    for asked in questions:
        began = time.perf_counter()
        found = ask(asked.text)
        took.append(1000 * (time.perf_counter() - began))
        for k in KS:
            is_hit = not asked.sessions.isdisjoint(found[:k])
            results[f"hit@{k}"].append(is_hit)
            results[f"{asked.kind} hit@{k}"].append(is_hit)
    return results, latency(took)


def open_search(client: Client) -> Ask:
    """Return a search over the sessions of the client's workspace."""

    def ask(text: str) -> Sequence[str]:
        reply = client.call("GET", f"/v1/sessions/search?{urlencode({'query': text, 'limit': max(KS)})}")
        if reply.status != 200:
            raise SystemExit(f"a search was refused: {reply}")
        return [item["session_id"] for item in reply.body["items"]]

    return ask


def open_fts(sessions: Sessions) -> Ask:
    """Return a full text search over the texts of sessions."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE session USING fts5 (id UNINDEXED, text, tokenize = 'porter unicode61')")
    texts = ((name, "\n".join(said.content for said in messages)) for name, messages in sessions.items())
    db.executemany("INSERT INTO session VALUES (?, ?)", texts)

    def ask(text: str) -> Sequence[str]:
        query = "SELECT id FROM session WHERE session MATCH ? ORDER BY rank LIMIT ?"
        return [name for (name,) in db.execute(query, (match_words(text), max(KS)))]

    return ask


def await_searchable(sessions: Sessions, ask: Ask) -> None:
    """Wait until sessions from all parts of the import are found by their first messages."""
    names = [*sessions][:: max(1, len(sessions) // PROBES)]
    probes = {name: sessions[name][0].content[:PROBE_CHARS].strip() for name in names}
    probes = {name: text for name, text in probes.items() if text}

    def is_searchable() -> bool:
        return sum(name in ask(text)[:10] for name, text in probes.items()) >= FOUND_SHARE * len(probes)

    wait_until("imported sessions are found", is_searchable, SEARCHABLE_WITHIN_S)


def await_vectors(stack: Stack, client: Client) -> None:
    """Wait until the messages of the person are queued and embedded."""
    seen = False

    def are_embedded() -> bool:
        nonlocal seen
        pending = stack.pending(client).get("embed_turns", 0)
        seen = seen or pending > 0
        time.sleep(1)
        return seen and not pending

    wait_until("all messages have vectors", are_embedded, EMBEDDED_WITHIN_S)
    stack.wait_for_encoder()


def show(report: Report, title: str, questions: Sequence[Question], ask: Ask, limit: Limit | None = None) -> Latency:
    """Ask all questions and report the results."""
    ask("warm up the search")
    results, took = ask_all(questions, ask)
    report.section(title)
    for kind in ("", *sorted({f"{asked.kind} " for asked in questions})):
        figures = {f"hit@{k}": mean(results[f"{kind}hit@{k}"]) for k in KS}
        count = len(results[f"{kind}hit@1"])
        aims = [(Aim(name, AIMS[name], at_least=True), figures[name]) for name in AIMS if not kind]
        text = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
        report.row(f"{kind.strip() or 'all'}, {count}", text, *aims)
    report.latency("search", took, limit, p95=60)
    return took


def main() -> None:
    """Measure the pooled sessions of the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--words", action="store_true", help="do not wait for the vectors")
    arguments = parser.parse_args()
    sessions, questions = pool(arguments.files)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as scratch:
        home, data = Path(scratch) / "user", Path(scratch) / "home"
        data.with_name("models").symlink_to(share_models(), target_is_directory=True)
        size = write_transcripts(sessions, home, home / "app")
        count = sum(map(len, sessions.values()))
        report.section(f"{len(sessions)} sessions, {count} messages, {size / 1e6:.0f} MB, {len(questions)} questions")
        began = time.perf_counter()
        fts = open_fts(sessions)
        report.row("FTS5 over sessions", f"built in {time.perf_counter() - began:.1f} s")
        limit = Limit("FTS5", show(report, "FTS5", questions, fts).p50)
        with stack_on(data) as stack:
            stack.start("web", "worker", "scheduler")
            began = time.perf_counter()
            answer = run_import(stack, home)
            ended = time.perf_counter() - began
            client = stack.client(*answer["workspaces"], timeout_s=600)
            ask = open_search(client)
            await_searchable(sessions, ask)
            searchable = time.perf_counter() - began
            report.section("Reverie, import")
            stored = sum(agent["turns"] for agent in answer["agents"])
            report.row("import", f"{stored} messages stored, the command ended after {ended:.1f} s")
            report.row("searchable", f"after {searchable:.1f} s", (Aim("s", 60), searchable))
            show(report, "Reverie, right after the import", questions, ask, limit)
            if not arguments.words:
                await_vectors(stack, client)
                title = f"Reverie, by words and meaning, {time.perf_counter() - began:.0f} s after the import began"
                show(report, title, questions, ask, limit)
            client.close()


if __name__ == "__main__":
    main()
