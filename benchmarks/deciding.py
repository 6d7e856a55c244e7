"""Measure whether a prompt is shown what the session that decided about it concluded, and nothing if there is none.

Run by `python -m benchmarks.deciding FILE …`. Each line of a file is a store, as in benchmarks/quality.py;
a question names the `session` that decided, the `evidence` turns in it, and a `stale_session` that it amends.

rule: at least half of the words of an evidence turn, apart from those of the question, are in the block. stale: the
outdated decision is in the block, and the current one is not. quiet: the block is empty if the deciding sessions are
incognito. Sessions are written to the store, concluded by the stage, and shown without memories.
"""

import argparse
import gzip
import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.bootstrap.web import WebContainer
from pipeline.features.capture.usecases import add_turns
from pipeline.features.team.usecases import Asked
from pipeline.index.encoder import ENGLISH, OnnxEncoder, encoder_directory
from pipeline.kernel.records import Stage
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import agent_sessions, work
from pipeline.kernel.store.turns import Message, Role
from pipeline.kernel.times import utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.briefing import BriefingLimits
from pipeline.sessions.stage import ConcludeStage
from pipeline.sessions.statements import StatementClassifier, StatementReader
from pipeline.text.tokens import STOP_WORDS
from tests.fakes.in_process import fast_settings, open_web
from tests.support.encoders import models_folder

LIMITS = BriefingLimits(5_000, 2_000)
OWNER = "benchmark"


@dataclass
class Figures:
    """The results of all questions."""

    rule: list[bool] = field(default_factory=list)
    stale: list[bool] = field(default_factory=list)
    quiet: list[bool] = field(default_factory=list)
    chars: list[int] = field(default_factory=list)


def read_stores(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the stores of a file, compressed or not."""
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    yield from (json.loads(line) for line in raw.decode().split("\n") if line)


def fill(workspace: Workspace, sessions: Sequence[Mapping[str, Any]], classifier: StatementClassifier) -> float:
    """Store sessions and conclude them; return the seconds of the stage."""
    for session in sorted(sessions, key=lambda session: session["at"]):
        start = datetime.fromisoformat(session["at"])
        messages = [
            Message(
                session["session"], Role(turn["speaker"]), turn["text"], utc_text(start + timedelta(minutes=minute))
            )
            for minute, turn in enumerate(session["turns"])
        ]
        with workspace.create().write() as db:
            add_turns(db, messages)
    with workspace.database.write() as db:
        items = work.claim(db, Stage.CONCLUDE, OWNER, limit=len(sessions), lease_s=3600, now=time.time())
    began = time.perf_counter()
    ConcludeStage(workspace.database, StatementReader(lambda _text: classifier)).run(items, OWNER)
    return time.perf_counter() - began


def ask(container: WebContainer, workspace: Workspace, question: str) -> str:
    """Return the block for a prompt, without memories."""
    return container.agents.prompts.compose(workspace, AgentSession("asks"), question, LIMITS, Asked()).text


def words(text: str) -> set[str]:
    """Return the words of a text that carry meaning."""
    return {word for word in re.findall(r"[a-z0-9_.+-]{2,}", text.lower()) if word.strip(".") not in STOP_WORDS}


def covers(block: str, texts: Sequence[str], question: str) -> bool:
    """Return whether a block contains half of what one of some texts adds to a question."""
    new = [words(text) - words(question) for text in texts]
    return any(len(added & words(block)) >= len(added) / 2 for added in new if added)


def judge(container: WebContainer, workspace: Workspace, store: Mapping[str, Any], figures: Figures) -> None:
    """Ask the questions of a store with and without the sessions that decided."""
    texts = {turn["id"]: turn["text"] for session in store["sessions"] for turn in session["turns"]}
    for asked in store["questions"]:
        question, block = asked["q"], ask(container, workspace, asked["q"])
        figures.rule.append(covers(block, [texts[turn] for turn in asked["evidence"]], question))
        if asked.get("stale"):
            figures.stale.append(
                not figures.rule[-1] and covers(block, [texts[turn] for turn in asked["stale"]], question)
            )
        figures.chars.append(len(block))
        with workspace.database.write() as db:
            for session in filter(None, (asked["session"], asked.get("stale_session"))):
                agent_sessions.begin_incognito(db, session, "2026-01-01T00:00:00.000Z")
        figures.quiet.append(not ask(container, workspace, question))
        with workspace.database.write() as db:
            for session in filter(None, (asked["session"], asked.get("stale_session"))):
                agent_sessions.end_incognito(db, session)


def main() -> None:
    """Measure every file and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="sets of sessions with questions")
    encoder = OnnxEncoder.load(encoder_directory(ENGLISH, models_folder()), threads=1)
    classifier = StatementClassifier.load(encoder, models_folder() / "statements")
    for file in parser.parse_args().files:
        figures, took_s = Figures(), 0.0
        for store in read_stores(file):
            with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
                container = open_web(fast_settings(Path(folder)))
                workspace = container.workspace("default")
                took_s += fill(workspace, store["sessions"], classifier)
                judge(container, workspace, store, figures)
                container.close()
        size = len(figures.rule)
        p95 = sorted(figures.chars)[int(0.95 * (size - 1))]
        print(
            f"{file.name}: rule {sum(figures.rule)}/{size}, stale {sum(figures.stale)}/{len(figures.stale)}, "
            f"quiet {sum(figures.quiet)}/{size}, p95 {p95} characters, concluded in {took_s:.1f} s"
        )


if __name__ == "__main__":
    main()
