"""A host whose transcripts, hooks and stored turns drift apart is not recorded, and the check says why."""

import os
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from pipeline.features.diagnostics import recording_check
from pipeline.features.diagnostics.recording_check import (
    GRACE_S,
    ConnectedHost,
    HostRecording,
    RecordingWatch,
    check_recording,
    describe_problem,
    judge,
)
from pipeline.kernel.errors import UnreadableTranscript
from pipeline.kernel.store.host_activity import HostActivity, Sign
from pipeline.kernel.store.turns import Role
from pipeline.kernel.times import utc_text
from pipeline.sessions.readers.reader import Said, SessionHead, SessionPart, TranscriptFile

NOON = 1_795_000_000.0
PEN = ConnectedHost("pen", "Pen", ("pen",), NOON - 86_400)


class PenReader:
    """Sessions are files with one line per message: role and time in seconds."""

    def __init__(self):
        self.read_names = []

    def discover(self, places):
        for path in sorted(places.home.glob("*.log")):
            yield TranscriptFile("pen", path, path.stat().st_size, path.stat().st_mtime)

    def read(self, file, _mark):
        self.read_names.append(file.path.name)
        text = file.path.read_text()
        if text == "damaged":
            raise UnreadableTranscript(file.path, "damaged")
        said = tuple(
            Said(Role(role), "text", at=utc_text(datetime.fromtimestamp(float(at), UTC)))
            for role, at in (line.split() for line in text.splitlines())
        )
        yield SessionPart(SessionHead("pen", file.path.stem), said, "1")


@pytest.fixture
def reader(monkeypatch):
    reader = PenReader()
    monkeypatch.setattr(recording_check, "READERS", {"pen": "pen"})
    monkeypatch.setattr(recording_check, "load_reader", lambda _agent: reader)
    return reader


@pytest.fixture
def activity(tmp_path):
    return HostActivity(tmp_path / "activity")


@pytest.fixture
def check(reader, activity, tmp_path):
    return lambda host=PEN: check_recording(
        lambda _was_heard: [host], activity._folder, SimpleNamespace(home=tmp_path)
    )[0]


def set_sign(activity, sign, at):
    activity.note("pen", sign)
    os.utime(activity._folder / f"pen.{sign}", (at, at))


def write_log(folder, name, *messages, modified=NOON):
    (folder / name).write_text("\n".join(f"{role} {at}" for role, at in messages))
    os.utime(folder / name, (modified, modified))


def test_a_host_that_is_heard_at_each_prompt_is_recorded(check, activity, tmp_path):
    write_log(tmp_path, "a.log", ("user", NOON), ("assistant", NOON + 600))
    set_sign(activity, Sign.HOOK, NOON + 1)
    found = check()
    assert (found.problem, found.prompt_at, found.hook_at) == (None, NOON, NOON + 1)


def test_a_prompt_after_the_last_hook_means_that_hooks_do_not_run(check, activity, tmp_path):
    write_log(tmp_path, "a.log", ("user", NOON), modified=NOON)
    set_sign(activity, Sign.HOOK, NOON - GRACE_S - 1)
    found = check()
    assert "its hooks do not run" in found.problem
    assert "reverie setup pen" in found.remedy
    assert found.silent_since == NOON - GRACE_S - 1


def test_a_long_answer_after_the_last_hook_is_no_problem(check, activity, tmp_path):
    write_log(tmp_path, "a.log", ("user", NOON), ("assistant", NOON + 9_000), modified=NOON + 9_000)
    set_sign(activity, Sign.HOOK, NOON)
    assert check().problem is None


def test_prompts_before_the_setup_had_no_hooks(check, tmp_path):
    write_log(tmp_path, "a.log", ("user", NOON - 86_400 - 60))
    assert check().problem is None


def test_a_host_that_was_never_heard_is_silent_since_its_setup(check, tmp_path):
    write_log(tmp_path, "a.log", ("user", NOON))
    found = check()
    assert "hooks do not run" in found.problem
    assert found.silent_since == PEN.set_up_at


def test_an_ended_turn_that_was_not_taken_means_that_capture_fails(check, activity):
    set_sign(activity, Sign.HOOK, NOON)
    set_sign(activity, Sign.TURN_ENDED, NOON)
    set_sign(activity, Sign.TURN_TAKEN, NOON - GRACE_S - 1)
    found = check()
    assert "its turns are not stored" in found.problem
    assert "reverie logs errors" in found.remedy
    assert found.silent_since == NOON - GRACE_S - 1


def test_the_newest_transcript_with_a_prompt_decides(check, reader, tmp_path):
    write_log(tmp_path, "old.log", ("user", NOON - 500), modified=NOON - 500)
    write_log(tmp_path, "main.log", ("user", NOON), modified=NOON + 5)
    write_log(tmp_path, "agent.log", ("assistant", NOON + 10), modified=NOON + 10)
    assert check().prompt_at == NOON
    assert reader.read_names == ["agent.log", "main.log"]


def test_a_transcript_that_cannot_be_read_is_skipped(check, tmp_path):
    write_log(tmp_path, "main.log", ("user", NOON))
    (tmp_path / "bad.log").write_text("damaged")
    assert check().prompt_at == NOON


@given(st.one_of(st.none(), st.floats(0, 1e9)), st.one_of(st.none(), st.floats(0, 1e9)), st.floats(0, 1e9))
def test_hooks_count_as_silent_only_after_a_later_prompt(prompt_at, hook_at, set_up_at):
    seen = HostRecording(ConnectedHost("pen", "Pen", (), set_up_at), prompt_at, hook_at, None, None)
    is_silent = judge(seen, None).problem is not None
    assert is_silent == (prompt_at is not None and prompt_at - GRACE_S > max(hook_at or 0.0, set_up_at))


def test_a_line_says_since_when_and_why():
    seen = HostRecording(PEN, NOON, None, None, None, "its hooks do not run", "x", NOON)
    day = datetime.fromtimestamp(NOON).astimezone()
    assert describe_problem(seen) == f"not recording since {day:%Y-%m-%d %H:%M}: its hooks do not run"


class Clock:
    """The clock of the watch."""

    def __init__(self, monkeypatch):
        self.now = 1e6
        monkeypatch.setattr(recording_check.time, "monotonic", lambda: self.now)


def test_a_session_is_warned_once_a_day(monkeypatch):
    clock = Clock(monkeypatch)
    found = HostRecording(PEN, NOON, None, None, None, "its hooks do not run", "Mend it", NOON)
    watch = RecordingWatch(pytest.fail)
    watch.list_problems(lambda: [found])
    warning = watch.take_warning(lambda: [found])
    assert "its hooks do not run" in warning
    assert "Mend it" in warning
    assert watch.take_warning(lambda: [found]) is None
    clock.now += recording_check.DAY_S
    assert watch.take_warning(lambda: [found]) == warning


def test_failing_recording_check_is_reported_and_yields_no_warning():
    reports = []
    watch = RecordingWatch(reports.append)

    def fail():
        raise OSError("no such disk")

    assert watch.list_problems(fail) == ()
    assert "no such disk" in reports[0]
