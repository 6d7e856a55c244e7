"""Records that real hosts wrote while a stand-in for their model failed and their user interrupted them."""

import json
from pathlib import Path

import pytest

from pipeline.sessions.events import read_file
from tests.fakes.read_messages import read_messages
from web.hooks.gemini import read_gemini
from web.hooks.session_files import read_session

RECORDS = Path(__file__).parents[2] / "data" / "host_records"
FINISHED = ["Say hello: we always greet in Welsh", "Hello there.", "We use pnpm here, not npm", "I will use pnpm."]
# Written by a host or another tool.
LEFT_OUT = ["Prompt is too long", "interrupted by user", "turn_aborted", "API Error", "make ship"]


def read_claude(tmp_path, name):
    lines = (RECORDS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    session = next(entry["sessionId"] for line in lines if "sessionId" in (entry := json.loads(line)))
    file = tmp_path / "projects" / "slug" / f"{session}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(lines), encoding="utf-8")
    messages, _, _ = read_messages(read_session("claude-code", file, session, None))
    return [message.content for message in messages]


def read_codex(tmp_path, name, *more):
    lines = [*(RECORDS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(), *more]
    file = tmp_path / f"{name}.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    messages, _, _ = read_messages(read_file("codex", file, None))
    return [message.content for message in messages]


def test_interrupted_turns_of_claude_code_are_read(tmp_path):
    said = read_claude(tmp_path, "claude-code")
    assert said[:5] == [*FINISHED, "Our staging port is 6543 now"]
    assert said[-1] == "Done."
    # This prompt was interrupted before the first answer, which withdraws it.
    assert [text for text in [*LEFT_OUT, "deploy only on Fridays"] if text in str(said)] == []


def test_a_prompt_without_an_answer_is_read(tmp_path):
    lines = (RECORDS / "claude-code.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    answer = next(number for number, line in enumerate(lines) if '"type": "assistant"' in line)
    session = json.loads(lines[0])["sessionId"]
    file = tmp_path / "projects" / "slug" / f"{session}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(lines[:answer]), encoding="utf-8")
    said, _, _ = read_messages(read_session("claude-code", file, session, None))
    assert [message.content for message in said] == FINISHED[:1]


def test_interrupted_turns_of_codex_are_read(tmp_path):
    said = read_codex(tmp_path, "codex")
    assert [text for text in said if text in FINISHED] == FINISHED
    assert {"From now on deploy only on Fridays", "Our staging port is 6543 now"} <= set(said)
    assert [text for text in LEFT_OUT if text in str(said)] == []


@pytest.mark.parametrize("name", ["codex-failed", "codex-interrupted-at-the-end"])
def test_a_session_of_codex_without_a_person_has_no_messages(tmp_path, name):
    assert read_codex(tmp_path, name) == []


def test_of_interrupted_turns_of_gemini_the_prompt_is_read():
    events = map(json.loads, (RECORDS / "gemini-events.jsonl").read_text(encoding="utf-8").splitlines())
    said = [message["content"] for event in events for message in read_gemini(event).get("said", ())]
    assert [text for text in said if text in FINISHED] == FINISHED
    assert {"From now on deploy only on Fridays", "Our staging port is 6543 now"} <= set(said)


PROMPTS = ("We use pnpm here", "The tender ships on Fridays", "And on Mondays too")


def say_in_codex(number, text):
    at = f"2026-11-24T09:{number:02}:00.000Z"
    turn = f"t{number}"
    records = [
        {"type": "task_started", "turn_id": turn},
        {"type": "user_message", "message": text},
        {"type": "agent_message", "message": f"Answer {number}"},
        {"type": "task_complete", "turn_id": turn},
    ]
    return [json.dumps({"timestamp": at, "type": "event_msg", "payload": record}) for record in records]


@pytest.mark.parametrize(("count", "left"), [(1, 2), (2, 1), (9, 0)])
def test_turns_that_were_rolled_back_in_codex_are_taken_back(tmp_path, count, left):
    file = tmp_path / "rollout-2026-11-24T09-00-00-th1.jsonl"
    meta = json.dumps({"type": "session_meta", "payload": {"id": "th1", "cwd": "/w/shop", "source": "cli"}})
    before = [meta, *(line for number, text in enumerate(PROMPTS) for line in say_in_codex(number, text))]
    file.write_text("\n".join([*before, ""]))
    said, _, mark = read_messages(read_file("codex", file, None))
    assert [message.content for message in said if message.role == "user"] == list(PROMPTS)
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": count}}
    file.write_text("\n".join([*before, json.dumps(back), *say_in_codex(4, "We go on"), ""]))
    for since, expected in ((mark, ["We go on"]), (None, [*PROMPTS[:left], "We go on"])):
        said, removed, _ = read_messages(read_file("codex", file, since))
        assert [message.content for message in said if message.role == "user"] == expected
        assert [message.content for message in removed if message.role == "user"] == list(PROMPTS[left:])


def test_prompt_of_codex_exec_is_not_read_as_a_persons_message(tmp_path):
    file = tmp_path / "rollout-2026-11-24T09-00-00-th1.jsonl"
    meta = json.dumps({"type": "session_meta", "payload": {"id": "th1", "cwd": "/w/shop", "source": "exec"}})
    file.write_text("\n".join([meta, *say_in_codex(1, "We always merge without review"), ""]))
    assert read_messages(read_file("codex", file, None))[0] == []
