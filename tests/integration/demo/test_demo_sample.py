import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from demo.project import make_project
from demo.sample import FAKE_SECRET, LENGTH, MONDAY, WEEK, exact_repeats, load_sample, secret_position
from demo.story import list_sections
from demo.transcripts import write_transcript
from pipeline.features.workspaces.identify import identify
from pipeline.kernel.records import FactKey
from pipeline.kernel.records.people import HOME_OWNER
from pipeline.sessions.readers.reader import Places, Said, ToolUse, load_reader
from pipeline.write.fact_placement import fact_text
from web.http.bodies import MemoryBody

SAMPLE = load_sample(MONDAY + LENGTH)
MEMORIES = SAMPLE.memories
QUESTIONS = [step for section in list_sections(MONDAY) for step in section.steps if step.is_question]


def words(text):
    return re.findall(r"\w+", text.lower())


@pytest.mark.parametrize("memory", MEMORIES, ids=range(len(MEMORIES)))
def test_every_memory_is_accepted_by_the_api(memory):
    draft = MemoryBody.model_validate_json(json.dumps(memory)).record(HOME_OWNER)
    if memory["kind"] == "keyed_fact":
        key = FactKey(memory["details"]["subject"], memory["details"]["attribute"])
        assert draft.content == fact_text(key, memory["details"]["value"])


def test_memories_are_in_order_of_time_and_every_session_has_some():
    assert all(a["occurred_at"] <= b["occurred_at"] for a, b in pairwise(MEMORIES))
    known = {memory["session_id"] for memory in MEMORIES if "session_id" in memory}
    assert known == {session.id for session in SAMPLE.sessions}


@pytest.mark.parametrize("now", [MONDAY + LENGTH + n * timedelta(hours=31) for n in range(12)])
def test_the_week_is_the_last_one_that_is_over(now):
    moved = load_sample(now)
    assert moved.monday.weekday() == 0
    assert timedelta(0) <= now - (moved.monday + LENGTH) < WEEK
    assert datetime.fromisoformat(moved.memories[-1]["occurred_at"]).replace(tzinfo=UTC) <= now
    assert moved.sessions[-1].start.weekday() == SAMPLE.sessions[-1].start.weekday()


def test_sample_memories_contain_a_repetition_and_a_fake_secret():
    (repeat,) = exact_repeats(MEMORIES)
    first = next(memory for memory in MEMORIES if memory["content"] == MEMORIES[repeat]["content"])
    assert first["kind"] == MEMORIES[repeat]["kind"]
    assert sum(FAKE_SECRET in memory["content"] for memory in MEMORIES) == 1
    assert "password" in MEMORIES[secret_position(MEMORIES)]["content"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda step: step.command)
def test_sample_question_has_at_most_a_single_answer_and_no_quotation(question):
    # One answer is captured from a session.
    assert len({m["content"] for m in MEMORIES if all(text in m["content"] for text in question.expect)}) <= 1
    asked = words(question.command)[2:-2]
    runs = {" ".join(asked[i : i + 4]) for i in range(len(asked) - 3)}
    assert not [m["content"] for m in MEMORIES if any(run in " ".join(words(m["content"])) for run in runs)]


def test_the_reader_of_claude_code_reads_every_session(tmp_path):
    for session in SAMPLE.sessions:
        write_transcript(tmp_path, tmp_path / "larder-api", session)
    reader = load_reader("claude-code")
    parts = [part for file in reader.discover(Places(tmp_path, {}, "linux")) for part in reader.read(file, None)]
    assert {part.session.id: part.session.title for part in parts} == {one.id: one.title for one in SAMPLE.sessions}
    entries = [entry for part in parts for entry in part.entries]
    told = [entry for session in SAMPLE.sessions for entry in session.entries]
    assert sum(isinstance(entry, Said) for entry in entries) == sum(kind in ("user", "agent") for kind, *_ in told)
    failed = [entry for entry in entries if isinstance(entry, ToolUse) and entry.ok is False]
    assert [call.exit_code for call in failed] == [
        code for kind, _, *rest in told if kind == "fails" for code in rest[:1]
    ]
    assert not any(part.problems for part in parts)


def test_sample_project_is_a_separate_repository(tmp_path):
    folder = make_project(tmp_path / "larder-api", SAMPLE.sessions)
    assert identify(folder / "larder").rule == "git-remote"
    assert (folder / "larder" / "jobs" / "queue.py").is_file()
