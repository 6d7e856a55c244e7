"""Long texts are read in linear time. The suite's timeout ends a quadratic search."""

import json

import pytest

from pipeline.sessions.readers.reader import TranscriptFile, load_reader

LONG_AGO = 0.0
CHARS = 1_000_000


def read(agent, path):
    file = TranscriptFile(agent, path, path.stat().st_size, LONG_AGO)
    return [entry for part in load_reader(agent).read(file, None) for entry in part.entries]


def write_aider(folder, text):
    path = folder / ".aider.chat.history.md"
    path.write_text(f"# aider chat started at 2026-01-05 10:00:00\n\n#### go  \n\n{text}\n", encoding="utf-8")
    return path


def write_lines(folder, name, *records):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_claude(folder, text):
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": text}
    records = [
        {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": content}} | fields
        for number, (content, fields) in enumerate(
            [(text, {}), ([block], {}), ([block], {"toolUseResult": "User rejected tool use"})]
        )
    ]
    return write_lines(folder, "3b0e7d52-6f3c-4b8e-9d57-0c6f5a1e2b11.jsonl", *records)


def write_gemini(folder, text):
    call = {"id": "c", "name": "run_shell_command", "args": {}, "status": "error"}
    result = [{"functionResponse": {"response": {"output": text}}}]
    records = [
        {"type": "user", "id": "a", "content": text},
        {"type": "gemini", "toolCalls": [call | {"result": result}]},
    ]
    return write_lines(folder, "chats/session-1.jsonl", {"sessionId": "s"}, *records)


def write_cursor(folder, text):
    content = [{"type": "text", "text": text}]
    return write_lines(folder, "c.jsonl", {"role": "user", "message": {"content": content}})


def write_cline(folder, text):
    call = {"type": "tool_use", "id": "t", "name": "apply_diff", "input": {"path": "a", "diff": text}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": text}
    block = {"type": "text", "text": text}
    turns = [("user", block), ("assistant", call), ("user", result), ("assistant", block), ("user", block)]
    path = folder / "tasks/1767000100000/api_conversation_history.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"role": role, "content": [part]} for role, part in turns]), encoding="utf-8")
    return path


def write_codex(folder, text):
    content = [{"type": "input_text", "text": text}]
    message = {"type": "message", "role": "user", "content": content}
    records = [message, {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}]
    output = {"type": "function_call_output", "call_id": "c", "output": text}
    return write_lines(
        folder, "rollout.jsonl", *({"payload": each, "type": "response_item"} for each in [*records, output])
    )


def write_antigravity(folder, text):
    steps = [{"type": "USER_INPUT", "content": text}, {"type": "RUN_COMMAND", "status": "DONE", "content": text}]
    return write_lines(folder, "s/.system/logs/transcript.jsonl", *steps)


WRITERS = {
    "aider": write_aider,
    "claude-code": write_claude,
    "gemini-cli": write_gemini,
    "cursor": write_cursor,
    "cline": write_cline,
    "codex": write_codex,
    "antigravity": write_antigravity,
}
COMMON = ["`", "\n", " ", "<a>"]
UNITS = {
    "aider": ["```\n<<<<<<< SEARCH\n", "```\na\n", "```\n<<<<<<< SEARCH\n=======\n", "<<<<<<< SEARCH\n", "=======\n"],
    "claude-code": [
        *("the user said:\n", "\n Note: ", "<command-name>", "<command-name>/a</command-name><command-args>"),
        *("<bash-input>", '"a"="', "\n\nNote: The user's next message"),
    ],
    "gemini-cli": ["--- Content from referenced files ---", "\n---", "\nOutput: "],
    "cursor": ["<user_query>", "</user_query>", "<user_query>a"],
    "cline": [
        *("<task>", "<feedback>", "<file_content ", "<file_content>", "<read_file>", "<thinking>", "<read_file><path>"),
        *(
            "# Current Working Directory (",
            "[a for 'b'",
            "<<<<<<< SEARCH\n",
            "<<<<<<< SEARCH\n:a:\n",
            "------- SEARCH\n-----\n",
        ),
    ],
    "codex": ["<user_shell_command><command>", "<user_shell_command><command>  ", "<cwd>", "*** Add File: a\n"],
    "antigravity": ["<USER_REQUEST>", "<ADDITIONAL_METADATA>", '"cwd":"', "exit code"],
}


@pytest.mark.parametrize(("agent", "unit"), [(agent, unit) for agent in WRITERS for unit in [*COMMON, *UNITS[agent]]])
def test_a_long_text_is_read_in_linear_time(tmp_path, agent, unit):
    path = WRITERS[agent](tmp_path, f"{unit * (CHARS // len(unit))}x")
    assert isinstance(read(agent, path), list)
