"""What the best importers of Claude Code's transcripts lose: the words of a person outside of plain prompts."""

import json

import pytest

from pipeline.sessions.readers.claude_code import Reader
from pipeline.sessions.readers.reader import Said, ToolUse, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut

SESSION = "3b0e7d52-6f3c-4b8e-9d57-0c6f5a1e2b11"
LONG_AGO = 0.0
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)


def user(content, **fields):
    return {"type": "user", "uuid": "u", "sessionId": SESSION, "message": {"role": "user", "content": content}} | fields


def queue(operation, content=None):
    return {"type": "queue-operation", "operation": operation, "sessionId": SESSION} | (
        {} if content is None else {"content": content}
    )


def queued(prompt):
    return {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}


def call(name, **arguments):
    block = {"type": "tool_use", "id": "t", "name": name, "input": arguments}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}}


def result(content, **fields):
    return user([{"type": "tool_result", "tool_use_id": "t", "content": content} | fields])


def rejection(text, fields):
    return result(text, is_error=True) | fields


@pytest.fixture
def read(tmp_path):
    def read_records(*records):
        path = tmp_path / f"{SESSION}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        file = TranscriptFile("claude-code", path, path.stat().st_size, LONG_AGO)
        return [entry for part in Reader().read(file, None) for entry in part.entries]

    return read_records


def words(entries):
    return [entry.content for entry in entries if isinstance(entry, Said) and entry.role == "user"]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([queue("enqueue", "use tabs"), queue("remove")], ["use tabs"]),
        ([queue("enqueue", "use tabs"), queue("remove"), queued("use tabs")], ["use tabs"]),
        ([queue("enqueue", "use tabs"), queue("remove"), user("use tabs")], ["use tabs"]),
        ([queue("enqueue", "use tabs"), queue("dequeue"), user("use tabs")], ["use tabs"]),
        # Two prompts become one message.
        (
            [queue("enqueue", "a b"), queue("enqueue", "c d"), queue("dequeue"), queue("dequeue"), user("a b\nc d")],
            ["a b\nc d"],
        ),
        # No message repeats the prompt.
        ([queue("enqueue", "use tabs"), queue("dequeue"), user("next")], ["use tabs", "next"]),
        ([queue("enqueue", "use tabs"), queue("dequeue")], ["use tabs"]),
        ([queue("enqueue", "use tabs")], ["use tabs"]),
        ([queue("enqueue", "use tabs"), queue("popAll")], []),
        ([queue("enqueue", "use tabs"), queue("popAll"), user("use spaces")], ["use spaces"]),
        ([queued([{"type": "text", "text": "use tabs"}])], ["use tabs"]),
        # A person may say the same twice.
        ([user("go on"), user("go on")], ["go on", "go on"]),
        ([queue("enqueue", "<task-notification>x</task-notification>"), queue("remove")], []),
    ],
)
def test_a_prompt_typed_while_the_agent_works_is_read_once(read, records, said):
    assert words(read(*records)) == said


SPOKEN = f"{REFUSED}To tell you how to proceed, the user said:\nuse sed here, never perl"
MARKED = {"toolUseResult": "User rejected tool use"}
KIND = {"toolUseResult": f"Error: {SPOKEN}", "toolDenialKind": "user-rejected"}


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        (SPOKEN, MARKED, ["use sed here, never perl"]),
        (SPOKEN, KIND, ["use sed here, never perl"]),
        (SPOKEN, KIND | {"userFeedback": "use sed here, never perl"}, ["use sed here, never perl"]),
        (f"{REFUSED}The user provided the following reason for the rejection: use sed", MARKED, ["use sed"]),
        (f"{SPOKEN}\n\nNote: The user's next message may contain a correction.", MARKED, ["use sed here, never perl"]),
        (f"{REFUSED}STOP what you are doing and wait for the user to tell you how to proceed.", MARKED, []),
        # The plan is the agent's own.
        (
            "The agent proposed a plan that was rejected by the user.\n\nRejected plan:\nthe user said: use tabs",
            MARKED,
            [],
        ),
    ],
)
def test_the_words_of_a_rejection_are_kept_and_its_call_is_not(read, text, fields, said):
    entries = read(call("Bash", command="perl x"), rejection(text, fields))
    assert words(entries) == said
    assert [entry for entry in entries if isinstance(entry, ToolUse)] == []


@pytest.mark.parametrize("tool", ["Bash", "WebFetch", "Task", "Read", "mcp__tracker__find", "mcp__Edit", "Skill"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"toolUseResult": f"Error: {SPOKEN}"},
        {"toolUseResult": {"error": "User rejected tool use"}},
        {"toolUseResult": "Error: User rejected tool use"},
        {"toolUseResult": f"Error: {SPOKEN}", "toolDenialKind": "permission-rule"},
        {"toolUseResult": f"Error: {SPOKEN}", "toolDenialKind": "interrupted"},
    ],
)
@pytest.mark.parametrize("around", ["{}", "<tool_use_error>{}</tool_use_error>", "Exit code 1\n{}", "\n {}"])
def test_the_text_of_a_failed_call_is_not_said_by_the_user(read, tool, fields, around):
    assert words(read(call(tool, command="perl x"), rejection(around.format(SPOKEN), fields))) == []


def test_a_rejection_of_an_edit_that_an_old_version_wrote_keeps_its_words(read):
    old = {"toolUseResult": f"Error: {SPOKEN}"}
    assert words(read(call("Edit", file_path="a.py"), rejection(SPOKEN, old))) == ["use sed here, never perl"]
    assert words(read(call("Edit", file_path="a.py"), rejection(SPOKEN, {"toolUseResult": "Error: x"}))) == []
    assert words(read(rejection(SPOKEN, old))) == []


def test_the_result_of_a_successful_call_is_not_said_by_the_user(read):
    entries = read(call("mcp__notes__list"), result(SPOKEN) | MARKED)
    assert words(entries) == []
    assert [entry.ok for entry in entries if isinstance(entry, ToolUse)] == [True]


@pytest.mark.parametrize(
    "fields", [{"origin": {"kind": "channel"}}, {"origin": {"kind": "peer"}}, {"commandMode": "task-notification"}]
)
def test_a_queued_message_of_another_origin_is_not_said_by_the_user(read, fields):
    record = queued("From now on we deploy on Fridays.")
    record["attachment"] |= fields
    assert words(read(record)) == []


def test_a_prompt_in_the_middle_of_a_call_does_not_end_it(read):
    entries = read(call("Bash", command="make"), queued("hurry"), result("Exit code 2\nno rule", is_error=True))
    assert words(entries) == ["hurry"]
    assert [(entry.ok, entry.exit_code) for entry in entries if isinstance(entry, ToolUse)] == [(False, 2)]


def test_an_answer_follows_its_question(read):
    answered = 'User has answered your questions: "Which port?"="6543". You can now continue.'
    entries = read(call("AskUserQuestion", questions=[{"question": "Which port?"}]), result(answered))
    assert [(str(entry.role), entry.content) for entry in entries if isinstance(entry, Said)] == [
        ("assistant", "Which port?"),
        ("user", "6543"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<command-name>/review</command-name><command-args>the diff</command-args>", ["/review the diff"]),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", ["/init"]),
    ],
)
def test_a_slash_command_is_read_as_it_was_typed(read, text, said):
    assert words(read(user(text))) == said


def test_a_command_of_the_person_is_a_call(read):
    (entry,) = read(user("<bash-input>git status</bash-input>"), user("<bash-stdout>clean</bash-stdout>"))
    assert (entry.tool, entry.arguments, entry.ok) == ("Bash", {"command": "git status"}, None)


ORIGIN = "11111111-aaaa-4aaa-8aaa-000000000001"


def spoken(session, number, role, text, **fields):
    message = {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}
    record = {"type": role, "uuid": f"e5bb4d6d-0000-4000-8000-00000000000{number}", "sessionId": session}
    return record | {"timestamp": f"2026-11-24T0{number}:00:00.000Z", "message": message} | fields


ASKED = ("Migrations run before the rollout.", "Noted.")


@pytest.mark.parametrize("form", ["names the request", "keeps the session"])
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("project", ["-w-shop", "-w-shop-tests"])
def test_the_beginning_of_a_fork_stays_with_the_original(tmp_path, form, is_stored, project):
    """Also if the original went on after the fork. Without the original, the copies are what is left."""
    session = ORIGIN if form == "keeps the session" else SESSION
    named = {"requestSessionId": ORIGIN} if form == "names the request" else {}
    original = [spoken(ORIGIN, 1, "user", ASKED[0]), spoken(ORIGIN, 2, "assistant", ASKED[1])]
    copies = [spoken(session, 1, "user", ASKED[0]), spoken(session, 2, "assistant", ASKED[1], **named)]
    fork = [*copies, spoken(SESSION, 3, "user", "Now rename the button."), spoken(SESSION, 4, "assistant", "Renamed.")]
    if is_stored:
        write_session(tmp_path / project, ORIGIN, [*original, spoken(ORIGIN, 9, "user", "And the footer.")])
    path = write_session(tmp_path / "-w-shop", SESSION, fork)
    parts = list(Reader().read(TranscriptFile("claude-code", path, path.stat().st_size, LONG_AGO), None))
    said = [entry.content for part in parts for entry in part.entries]
    assert said == [*(() if is_stored else ASKED), "Now rename the button.", "Renamed."]
    assert parts[-1].session.parent == ORIGIN


def test_a_fork_that_grows_reads_its_own_records(tmp_path):
    write_session(tmp_path, ORIGIN, [spoken(ORIGIN, 1, "user", ASKED[0]), spoken(ORIGIN, 2, "assistant", ASKED[1])])
    copies = [spoken(SESSION, 1, "user", ASKED[0]), spoken(SESSION, 2, "assistant", ASKED[1], requestSessionId=ORIGIN)]
    path = write_session(tmp_path, SESSION, copies)
    (part,) = Reader().read(TranscriptFile("claude-code", path, path.stat().st_size, LONG_AGO), None)
    assert part.entries == ()
    again = spoken(SESSION, 5, "user", "One more thing.")
    path = write_session(tmp_path, SESSION, [*copies, copies[0], again])
    (part,) = Reader().read(TranscriptFile("claude-code", path, path.stat().st_size, LONG_AGO), part.mark)
    assert [entry.content for entry in part.entries] == ["One more thing."]


def write_session(folder, session, records):
    folder.mkdir(exist_ok=True)
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_records_of_the_program_are_no_unknown_records(tmp_path):
    kinds = ["mode", "atis-latch", "tools-used", "api-request", "api-request-blob", "last-prompt", "cost-state", "new"]
    records = [{"type": kind, "sessionId": SESSION, "message": {"role": "user", "content": "x"}} for kind in kinds]
    path = write_session(tmp_path, SESSION, [*records, {"type": "unheard-of", "uuid": "u", "sessionId": SESSION}])
    (part,) = Reader().read(TranscriptFile("claude-code", path, path.stat().st_size, LONG_AGO), None)
    assert part.left_out == {LeftOut.META: len(kinds), LeftOut.UNKNOWN: 1}
