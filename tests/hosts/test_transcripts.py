"""The readers of transcripts read what real agent programs wrote: prompts, answers, and commands with their result."""

import pytest

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.reader import Places, Said, ToolUse, load_reader
from tests.hosts.model_server import Call, Say

pytestmark = pytest.mark.timeout(600)

PROMPT, ANSWER = "Which port does the gateway of staging listen on?", "One file is made, the other is missing."
FINE, FAILING = "touch made.txt", "ls missing-file"
SHELLS = {
    "claude-code": lambda command: Call("Bash", {"command": command, "description": "x"}),
    "codex": lambda command: Call("exec_command", {"cmd": command}),
    "gemini-cli": lambda command: Call("run_shell_command", {"command": command}),
    "opencode": lambda command: Call("bash", {"command": command, "description": "x"}),
    "kilo": lambda command: Call("bash", {"command": command, "description": "x"}),
    "qwen-code": lambda command: Call("run_shell_command", {"command": command, "is_background": False}),
    "copilot-cli": lambda command: Call("bash", {"command": command, "description": "x"}),
    "pi": lambda command: Call("bash", {"command": command}),
    "cline": lambda command: Call("run_commands", {"commands": [command]}),
}


def read_entries(machine, agent):
    """Read all entries of an agent, and check that a second reading finds nothing new."""
    reader, entries = load_reader(agent), []
    for file in reader.discover(Places(machine.home, machine.environment, "linux")):
        mark = None
        for part in reader.read(file, None):
            assert part.problems == ()
            if part.entries:
                assert part.session.cwd == str(machine.project)
            entries += part.entries
            mark = part.mark
        assert [entry for part in reader.read(file, mark) for entry in part.entries] == []
    return entries


def check_entries(entries):
    assert [entry.content for entry in entries if isinstance(entry, Said) and entry.role is Role.USER] == [PROMPT]
    assert [entry.content for entry in entries if isinstance(entry, Said)][-1] == ANSWER
    commands = [entry for entry in entries if isinstance(entry, ToolUse) and entry.tool == "Bash"]
    assert [use.arguments["command"] for use in commands] == [FINE, FAILING]
    assert [use.ok for use in commands] == [True, False]
    assert commands[0].exit_code in (0, None)
    assert commands[1].exit_code == 2
    assert "missing-file" in commands[1].error


def script(agent):
    return [SHELLS[agent](FINE), SHELLS[agent](FAILING), Say(ANSWER)]


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("claude-code", "claude-code"),
        ("codex", "codex"),
        ("gemini", "gemini-cli"),
        ("opencode", "opencode"),
        ("kilo", "kilo"),
        ("qwen-code", "qwen-code"),
        ("copilot", "copilot-cli"),
        ("pi", "pi"),
        ("cline", "cline"),
    ],
)
def test_session_transcript_is_read_without_injected_memories(machine, name, agent):
    machine.install(name)
    machine.remember({"content": "The gateway of staging listens on port 8443"})
    machine.model.expect(*script(agent))
    machine.ask(PROMPT)
    machine.let_a_person_have_asked()
    assert "port 8443" in machine.model.requests[0].text
    entries = read_entries(machine, agent)
    check_entries(entries)
    assert "8443" not in repr(entries)
