"""A short follow-up is answered with what the message before it was about; other short messages find nothing."""

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from pipeline.context.briefing import BriefingLimits, Readable, compose_briefing
from pipeline.context.follow_up import LastMessages
from pipeline.index.encoder import OnnxEncoder
from pipeline.records import Draft, Kind, Stage
from pipeline.records.hooks import AgentSession
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, fast_settings, open_web, open_worker

LABELLED = json.loads((Path(__file__).parents[1] / "data" / "follow_ups.json").read_text(encoding="utf-8"))
LIMITS = BriefingLimits(budget_ms=10_000, max_chars=4000)
_sessions = count(1)


@pytest.fixture(scope="module")
def show(multilingual_model, tmp_path_factory):
    """Return the keys of the memories that each of some messages of one session is shown."""
    settings = fast_settings(tmp_path_factory.mktemp("follow_ups"))
    encoder = OnnxEncoder.load(multilingual_model, threads=1)
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    memories = LABELLED["memories"]
    drafts = [Draft(content=memory["content"], kind=Kind(memory["kind"])) for memory in memories]
    receipts = accept_batch(container.databases.get("labelled", create=True), drafts)
    errors: list[str] = []
    digest_stage(worker, Stage.EMBED, worker.stages("labelled")[Stage.EMBED], errors.append, "labelled")
    assert errors == []
    keys = {receipt.id: memory["id"] for receipt, memory in zip(receipts, memories, strict=True)}
    readable = Readable(container.contexts.get(container.workspace("labelled")))

    def run(*messages, last):
        session = AgentSession(f"s{next(_sessions)}")
        told = [
            compose_briefing(readable, session, message, LIMITS, datetime.now(UTC), last=last) for message in messages
        ]
        return [[keys[memory.id] for memory in briefing.shown] for briefing in told]

    yield run
    container.close()
    worker.close()


def judge(show, part, *, continued):
    """Return the shares of follow-ups that are shown their memory, and of other messages that are shown nothing."""
    last = LastMessages() if continued else None
    found, quiet = [], []
    for example in LABELLED["examples"]:
        if example["part"] == part:
            shown = show(example["first"], example["second"], last=last)[-1]
            if example["answer"] is None:
                quiet.append(not shown)
            else:
                found.append(example["answer"] in shown)
    return sum(found) / len(found), sum(quiet) / len(quiet)


def test_follow_ups_find_their_memory_and_other_short_messages_find_nothing(show):
    before, after = judge(show, "test", continued=False), judge(show, "test", continued=True)
    print(f"found {before[0]:.2f} → {after[0]:.2f}, quiet {before[1]:.2f} → {after[1]:.2f}")
    assert after[0] >= 2 * before[0]
    assert after[1] >= 0.75
