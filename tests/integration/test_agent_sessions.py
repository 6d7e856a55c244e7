"""An agent is answered in its time or told nothing, whatever the store or a channel does meanwhile."""

import threading
import time
from dataclasses import replace

import pytest

from config.settings import load_settings
from pipeline.kernel.errors import StoreBusy
from pipeline.kernel.records import Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Channel
from pipeline.kernel.store import agent_sessions, impressions, memories
from pipeline.prompt.briefing import hook_recall_budget_ms
from pipeline.recall import feedback as writer
from pipeline.write.tool_actions import Outcome
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import HeldEncoder, flush_notes

SESSION = AgentSession("s1", None, "/p", Viewer(session="s1"))
PORT = "Which port does billing listen on?"


class HangingEncoder(HashEncoder):
    """An encoder that answers only once it is released."""

    def __init__(self):
        super().__init__()
        self.released = threading.Event()

    def encode_query(self, text):
        self.released.wait(30)
        return super().encode_query(text)


@pytest.fixture
def hanging(container):
    encoder = HangingEncoder()
    container.encoders = HeldEncoder(encoder)
    yield encoder
    encoder.released.set()


@pytest.fixture
def known(client, digested):
    client.write("Billing listens on port 8123")
    client.write("Run make migrate before the tests on billing port 8123", kind="lesson")
    digested()


def workspace(container):
    return container.workspace("default")


def read_impressions(container):
    flush_notes(container)
    with container.databases.get("default").read() as db:
        return agent_sessions.list_seen_versions(db, "s1", "", memories.all_seqs(db)), len(
            impressions.list_unanswered(db, "s1")
        )


def errors(container):
    return [entry.message for entry in container.operations.errors(workspace="default", limit=20)]


@pytest.mark.usefixtures("known")
def test_shown_memories_are_recorded_as_impressions(container):
    assert "8123" in (container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT).text or "")
    versions, surfaced = read_impressions(container)
    assert (len(versions), surfaced) == (2, 1)


@pytest.mark.usefixtures("known")
def test_recall_leaves_time_for_the_rest(container):
    asked = []
    run = container.contexts._channels.run
    container.contexts._channels.run = lambda searches, deadline, on_error: (
        asked.append(deadline - time.perf_counter()) or run(searches, deadline, on_error)
    )
    container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT)
    assert asked[0] <= hook_recall_budget_ms(container.settings) / 1000 < container.settings.hook_budget_ms / 1000


@pytest.mark.usefixtures("known")
def test_a_channel_that_hangs_is_left_out(container, hanging):
    container.settings.paths.workspace("default").config.write_text("hook_budget_ms = 400\n")
    answers = []
    run = container.contexts._channels.run
    container.contexts._channels.run = lambda *given: answers.append(run(*given)) or answers[-1]
    began = time.perf_counter()
    container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT)
    print(f"prompt with a hanging channel: {(time.perf_counter() - began) * 1000:.0f} ms of 400")
    assert answers[0][Channel.DENSE].report.state == "late"
    assert answers[0][Channel.LEXICAL].report.state == "ok"


@pytest.mark.usefixtures("known")
def test_late_answer_is_neither_shown_nor_recorded(container, monkeypatch):
    container.settings.paths.workspace("default").config.write_text("hook_budget_ms = 10\n")
    container.contexts.get(workspace(container))
    flush = container.feedback.flush
    monkeypatch.setattr(container.feedback, "flush", lambda: threading.Event().wait(0.02) or flush())
    answer = container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT)
    assert (answer.text, answer.is_late) == (None, True)
    assert read_impressions(container) == ({}, 0)
    container.settings.paths.workspace("default").config.unlink()
    assert "8123" in (container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT).text or "")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("is_warming", [True, False], ids=["server loads", "first of its workspace"])
def test_a_prompt_that_needs_indexes_which_are_not_loaded_has_more_time(container, monkeypatch, is_warming):
    container.settings.paths.workspace("default").config.write_text("hook_budget_ms = 10\n")
    flush = container.feedback.flush
    monkeypatch.setattr(container.feedback, "flush", lambda: threading.Event().wait(0.02) or flush())
    container.contexts.is_warming = is_warming
    assert "8123" in (container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT).text or "")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("waits_ms", "is_late"), [(0, True), (500, True), (2500, False)])
def test_the_first_prompt_has_the_time_that_its_host_still_waits(container, monkeypatch, waits_ms, is_late):
    container.settings.paths.workspace("default").config.write_text("hook_budget_ms = 10\n")
    flush = container.feedback.flush
    monkeypatch.setattr(container.feedback, "flush", lambda: threading.Event().wait(0.9) or flush())
    container.contexts.is_warming = True
    answer = container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT, waits_ms=waits_ms)
    assert answer.is_late == is_late
    assert ("8123" in (answer.text or "")) != is_late


@pytest.mark.usefixtures("known")
def test_locked_store_does_not_delay_agents(container, monkeypatch):
    """While another process writes, what is to be noted waits; agents do not."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.05)
    other = container.databases.get("default")
    holding, release = threading.Event(), threading.Event()

    def hold():
        with other.write():
            holding.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holding.wait(10)
    try:
        began = time.perf_counter()
        container.agents.sessions.record_tool_use(
            workspace(container), SESSION, "Edit", {"file_path": "x.py"}, Outcome(ok=True)
        )
        container.agents.sessions.end_turn(workspace(container), SESSION)
        container.agents.sessions.flush(workspace(container))
        assert "8123" in (container.agents.sessions.answer_prompt(workspace(container), SESSION, PORT).text or "")
        print(f"four events beside a held store: {(time.perf_counter() - began) * 1000:.0f} ms")
        assert not release.is_set()
    finally:
        release.set()
        holder.join()
    flush_notes(container)
    with other.read() as db:
        assert [one.target for one in agent_sessions.list_actions(db, "s1", "", 10)] == ["x.py"]


def test_unrecordable_actions_are_reported_in_the_error_log(container, known, monkeypatch):
    def busy(*_given):
        raise StoreBusy("another process holds the store")

    def broken(*_given):
        raise ValueError("a bug")

    for failure, line in ((busy, "another process holds the store"), (broken, "ValueError: a bug")):
        monkeypatch.setattr(agent_sessions, "add_action", failure)
        container.agents.sessions.record_tool_use(
            workspace(container), SESSION, "Edit", {"file_path": "x.py"}, Outcome(ok=True)
        )
        flush_notes(container)
        assert line in errors(container)


def test_budgets_of_every_size_leave_recall_some_time(home):
    assert load_settings().hook_budget_ms == home.hook_budget_ms
    for budget in (10, 300, 2000):
        assert 1 <= hook_recall_budget_ms(replace(home, hook_budget_ms=budget)) < budget
