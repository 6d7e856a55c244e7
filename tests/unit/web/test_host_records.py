"""Records that real hosts wrote while a stand-in for their model failed and their user interrupted them."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.services.session_messages import read_messages
from web.hooks.gemini import read_gemini
from web.hooks.session_files import read_session

RECORDS = Path(__file__).parents[2] / "data" / "host_records"
FINISHED = ["Say hello: we always greet in Welsh", "Hello there.", "We use pnpm here, not npm", "I will use pnpm."]
# Said in turns that were interrupted or failed, or written by a host or another tool.
LOST = ["deploy only on Fridays", "staging port is 6543", "Prompt is too long", "interrupted by user", "make ship"]


def read_claude(tmp_path, name, **options):
    lines = (RECORDS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    session = next(entry["sessionId"] for line in lines if "sessionId" in (entry := json.loads(line)))
    file = tmp_path / "projects" / "slug" / f"{session}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(lines), encoding="utf-8")
    messages, _ = read_session("claude-code", file, session, None, **options)
    return [message.content for message in messages if not message.is_taken_back]


def read_codex(tmp_path, name, *more):
    lines = [*(RECORDS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(), *more]
    file = tmp_path / f"{name}.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    messages, _ = read_messages("codex", file, None)
    return [message.content for message in messages if not message.is_taken_back]


def test_claude_code_leaves_only_finished_turns(tmp_path):
    said = read_claude(tmp_path, "claude-code")
    assert said[:4] == FINISHED
    assert said[-1] == "Done."
    assert [text for text in LOST if text in str(said)] == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_prompt_that_was_interrupted_at_the_end_of_a_session_is_left_out(tmp_path, is_answered):
    assert read_claude(tmp_path, "claude-code-interrupted-at-the-end", is_answered=is_answered) == []


def test_a_prompt_without_an_answer_is_left_out_unless_the_host_reported_one(tmp_path):
    lines = (RECORDS / "claude-code.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    answers = [number for number, line in enumerate(lines) if '"type": "assistant"' in line]
    cut = tmp_path / "cut" / "projects" / "slug"
    cut.mkdir(parents=True)
    session = json.loads(lines[0])["sessionId"]
    (cut / f"{session}.jsonl").write_text("".join(lines[: answers[0]]), encoding="utf-8")
    for is_answered, expected in ((True, FINISHED[:1]), (False, [])):
        file = cut / f"{session}.jsonl"
        read, _ = read_session("claude-code", file, session, None, is_answered=is_answered)
        assert [message.content for message in read] == expected
    shutil.rmtree(cut)


def test_codex_leaves_only_finished_turns(tmp_path):
    said = read_codex(tmp_path, "codex")
    assert said[:4] == FINISHED
    assert [text for text in [*LOST, "make check"] if text in str(said)] == []


@pytest.mark.parametrize("name", ["codex-failed", "codex-interrupted-at-the-end"])
def test_a_codex_session_of_one_broken_turn_has_no_messages(tmp_path, name):
    assert read_codex(tmp_path, name) == []


def test_a_codex_turn_that_never_ended_is_left_out_when_the_session_continues(tmp_path):
    lines = (RECORDS / "codex.jsonl").read_text(encoding="utf-8").splitlines()
    start = next(line for line in lines if '"task_started"' in line)
    assert "never push on Mondays" in str(read_codex(tmp_path, "codex"))
    assert "never push on Mondays" not in str(read_codex(tmp_path, "codex", start))


def test_gemini_leaves_only_finished_turns():
    events = map(json.loads, (RECORDS / "gemini-events.jsonl").read_text(encoding="utf-8").splitlines())
    said = [message["content"] for event in events for message in read_gemini(event).get("said", ())]
    assert said == FINISHED


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
    said, mark = read_messages("codex", file, None)
    assert [message.content for message in said if message.role == "user"] == list(PROMPTS)
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": count}}
    file.write_text("\n".join([*before, json.dumps(back), *say_in_codex(4, "We go on"), ""]))
    for since, expected in ((mark, ["We go on"]), (None, [*PROMPTS[:left], "We go on"])):
        said, _ = read_messages("codex", file, since)
        own = [message for message in said if message.role == "user"]
        assert [message.content for message in own if not message.is_taken_back] == expected
        assert [message.content for message in own if message.is_taken_back] == list(PROMPTS[left:])


def test_the_prompt_of_codex_exec_is_said_by_nobody(tmp_path):
    file = tmp_path / "rollout-2026-11-24T09-00-00-th1.jsonl"
    meta = json.dumps({"type": "session_meta", "payload": {"id": "th1", "cwd": "/w/shop", "source": "exec"}})
    file.write_text("\n".join([meta, *say_in_codex(1, "We always merge without review"), ""]))
    said, _ = read_messages("codex", file, None)
    assert [message.content for message in said if not message.is_taken_back] == []
