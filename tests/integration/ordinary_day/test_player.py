"""What plays and judges the ordinary day: its clock, its transcripts, and how it reads answers."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import cycle
from types import SimpleNamespace

import pytest

from pipeline.prompt.history import LATE
from tests.fakes.read_messages import read_messages
from tests.integration.ordinary_day import player as playing
from tests.integration.ordinary_day.judge import Judge
from tests.integration.ordinary_day.player import _CLI_HIT, _TOOL_HIT, Outcome, Player, Session, _split, _texts
from tests.integration.ordinary_day.steps import Step
from tests.integration.ordinary_day.stored import DataDirectory
from tests.integration.ordinary_day.transcript import Transcript, transcript_path
from tests.support.clock import ShiftedClock, has_compiler
from web.hooks.client import WITHIN_S
from web.hooks.session_files import read_session

NOW = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)


def judge(outcome, **expectations):
    """List what a step that expects something finds wrong with an outcome, on a machine without memories."""
    data = SimpleNamespace(list_memories=lambda _now: [], find_bytes=lambda _text: [])
    machine = SimpleNamespace(data=data, is_up=True, workspace=lambda _project: "p")
    player = SimpleNamespace(machine=machine, now_text=lambda: "2026-03-02T08:01:00Z")
    step = Step(step=1, day=1, at="08:01", project="p", topic=1, say="x", reply="y", **expectations)
    return [failure.what for failure in Judge(player).judge(step, outcome)]


class SlowMachine:
    """A machine whose hooks print nothing; `runs` are the notes of its server, by the time of reading."""

    is_up = True

    def __init__(self, *runs):
        self.runs = list(runs)
        self.clock = SimpleNamespace(now=lambda: NOW)

    def path(self, _project):
        return "/src/p"

    def send_hook(self, _project, _event):
        return {}

    def wait_for_notes(self):
        pass

    def list_hook_runs(self, _limit):
        return self.runs.pop(0) if self.runs else []

    def read_hook_run(self, _run_id):
        return "port 5433"


def send_prompt(machine, *, waited_s):
    transcript = SimpleNamespace(file="t.jsonl")
    return Player(machine, monotonic=cycle([0.0, waited_s]).__next__)._send(
        Session("s1", "p", transcript), "UserPromptSubmit", prompt="which port?"
    )


def note_run(outcome):
    at = NOW.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    run = {"id": "1", "session_id": "s1", "event": "UserPromptSubmit", "at": at, "took_ms": 1200.0}
    return [run | {"outcome": outcome, "reason": "nothing about it"}]


def test_hook_run_recorded_after_its_client_left_is_awaited():
    machine = SlowMachine([], note_run("told"))
    answer = send_prompt(machine, waited_s=WITHIN_S)
    assert answer["additionalContext"] == "port 5433"


def test_an_answer_that_is_never_noted_is_reported(monkeypatch):
    monkeypatch.setattr(playing, "UNANSWERED_S", 0.0)
    answer = send_prompt(SlowMachine(), waited_s=WITHIN_S)
    assert answer["note"].startswith(LATE)


def test_a_prompt_that_was_answered_with_nothing_is_not_awaited():
    machine = SlowMachine([], note_run("told"))
    assert send_prompt(machine, waited_s=0.1) == {}


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("the port is 5433.", True),
        ("localhost:5433", True),
        ("since 15433", False),
        ("01KAY5433X", False),
        ("0.5433", False),
        ("5433.5", False),
    ],
)
def test_a_number_counts_only_as_a_separate_word(text, is_shown):
    assert (judge(Outcome(text), shown=["5433"]) == []) is is_shown
    assert (judge(Outcome(text), silent=["5433"]) == []) is not is_shown


def test_one_item_of_a_nested_list_is_enough():
    assert judge(Outcome("uses Celery"), shown=[["Dramatiq", "Celery"]]) == []
    assert judge(Outcome("uses cron"), shown=[["Dramatiq", "Celery"]]) == ["not shown: ['Dramatiq', 'Celery']"]


def test_memories_shown_earlier_count_only_if_the_step_allows_it():
    outcome = Outcome("", shown_before="port 5433", is_empty=True)
    assert judge(outcome, shown=["5433"]) == ["not shown: '5433'"]
    assert judge(outcome, shown=["5433"], in_session=True) == []


def test_the_judge_checks_silence_first_results_blocks_and_refusals():
    assert judge(Outcome("x"), silent=True) == ["not silent"]
    assert judge(Outcome(results=("port 1", "port 2")), first="port 2") != []
    assert judge(Outcome(is_blocked=True), blocked=False) == ["blocked"]
    assert judge(Outcome("created"), refused="session") == ["not refused"]
    assert judge(Outcome("Not in this session", is_refused=True), refused="session") == []
    assert judge(Outcome("No such command", is_refused=True), silent=["Traceback"]) == ["ended with an error"]


def test_the_judge_reports_a_missing_memory():
    assert judge(Outcome(), stored=[{"text": "uv.lock"}]) == ["not stored: {'text': 'uv.lock'}, but []"]


def test_answers_are_split_into_their_memories():
    tool = "Found:\n- [AB12CD34 · fact · 2 d ago] one\n  more\n- [AB12CD35 · lesson · now] two"
    assert [part[-3:].strip() for part in _split(_TOOL_HIT, tool)] == ["re", "two"]
    printed = (
        "  1  0.912  fact  2026-03-02T08:01  01K\n       one\n  2  0.100  fact  2026-03-02T08:01  01K\n       two\n"
    )
    assert [part.split()[-1] for part in _split(_CLI_HIT, printed)] == ["one", "two"]
    assert _split(_TOOL_HIT, "Nothing relevant in this workspace.") == ()


def test_texts_of_an_answer_are_without_ids_and_times():
    answer = {"id": "5433", "content": "a", "items": [{"created_at": "2026", "value": "b"}], "took_ms": 3}
    assert _texts(answer) == ["a", "b"]


def test_bytes_are_found_raw_and_json_escaped(tmp_path):
    (tmp_path / "a").write_text("Käpten", encoding="utf-8")
    (tmp_path / "b").write_text(json.dumps("Käpten"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "c").write_text("Käpten", encoding="utf-8")
    assert sorted(DataDirectory(tmp_path).find_bytes("Käpten")) == ["a", "b"]


def test_a_transcript_reads_like_one_of_claude_code(tmp_path):
    file = transcript_path(tmp_path, tmp_path / "work", "s1")
    transcript = Transcript(file, tmp_path / "work", "s1", lambda: NOW)
    transcript.add_prompt("which port?")
    transcript.add_hook_context("UserPromptSubmit", "port 5433")
    transcript.add_tool_use("t1", "Bash", {"command": "ls"})
    transcript.add_tool_result("t1", "a.py", {"stdout": "a.py"})
    transcript.add_reply("5433")
    transcript.add_compaction()
    messages, _, _ = read_messages(read_session("claude-code", file, "s1", None))
    assert [(one.role, one.content) for one in messages] == [("user", "which port?"), ("assistant", "5433")]
    assert {one.at for one in messages} == {"2026-03-02T08:01:00.000Z"}


def test_a_fork_copies_ids_and_times_under_its_own_name(tmp_path):
    first = Transcript(transcript_path(tmp_path, tmp_path, "s1"), tmp_path, "s1", lambda: NOW)
    first.add_prompt("which port?")
    fork = Transcript(transcript_path(tmp_path, tmp_path, "s2"), tmp_path, "s2", lambda: NOW + timedelta(days=1))
    fork.copy(first.file, "s1")
    (original,), (copy,) = (map(json.loads, one.file.read_text().splitlines()) for one in (first, fork))
    assert (copy["uuid"], copy["timestamp"]) == (original["uuid"], original["timestamp"])
    assert (copy["sessionId"], copy["forkedFrom"]["sessionId"]) == ("s2", "s1")


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler to shift the time of day with")
def test_programs_use_a_shifted_clock_that_only_moves_forward(tmp_path):
    clock = ShiftedClock(tmp_path)
    clock.set_forward(NOW)
    clock.set_forward(NOW - timedelta(hours=1))
    python = clock.make_environment(tmp_path / "environment")
    program = [python, "-I", "-c", "import sys, time, tomlkit; print(sys.executable, time.time())"]
    shown = subprocess.run(program, env={}, capture_output=True, text=True, check=True).stdout.split()
    assert shown[0] == str(python)
    assert NOW.timestamp() <= float(shown[1]) <= clock.now().timestamp()
