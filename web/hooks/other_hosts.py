"""The hook events of other hosts than Claude Code: a route each, which translates them to its events and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from flask import Response

from pipeline.sessions.readers.cline import unwrap_prompt
from pipeline.sessions.readers.session_databases import unquote_prompt
from pipeline.sessions.readers.tool_calls import TOOLS
from pipeline.text.command_lines import list_patch_files
from pipeline.write.tool_actions import FILES_NAME
from web.hooks.antigravity import read_antigravity, write_antigravity
from web.hooks.claude_code import answer_event, write_claude_code
from web.hooks.copilot import read_copilot, write_copilot
from web.hooks.cursor import read_cursor, write_cursor
from web.hooks.event_fields import Fields
from web.hooks.gemini import read_gemini, write_gemini
from web.hooks.plugin_events import translate_tool, unwrap_prompts
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("other_hosts")


def read_codex(event: Fields) -> Fields:
    """Return an event with the files that a patch changes; the first is its path."""
    arguments = event.get("tool_input")
    patch = arguments.get("command", arguments.get("input")) if isinstance(arguments, Mapping) else None
    if event.get("tool_name") != "apply_patch" or not isinstance(patch, str):
        return event
    files = list_patch_files(patch)
    return event | {"tool_input": {"path": files[0], FILES_NAME: files, "patch": patch}} if files else event


def read_qwen(event: Fields) -> Fields:
    """Return an event with Claude Code's tool names and with the prompt as the user typed it."""
    tool, typed = event.get("tool_name"), event.get("submitted_prompt")
    # `prompt` contains what commands and earlier hooks added.
    read = event | ({"prompt": typed} if isinstance(typed, str) else {})
    return read | ({"tool_name": TOOLS["qwen-code"].names.get(tool, tool)} if isinstance(tool, str) else {})


def read_opencode(event: Fields) -> Fields:
    """Return an event with Claude Code's tools, and with prompts as the user typed them."""
    return unwrap_prompts(translate_tool(event, "reverie_"), unquote_prompt)


def read_cline(event: Fields) -> Fields:
    """Return an event with Claude Code's tools, and with prompts as the user typed them."""
    return unwrap_prompts(translate_tool(event, "reverie__"), unwrap_prompt)


@dataclass(frozen=True, slots=True)
class HookHost:
    """A host: its name in texts, its translation, and whether it can ask its user before a tool runs.

    `reads_files`: `read` also gets `is_local`, whether the files of the host are on this machine.
    """

    title: str
    read: Callable[..., Fields]
    write: Callable[[Fields], Fields] = write_claude_code
    can_ask: bool = False
    reads_files: bool = False


HOSTS = {
    "codex": HookHost("a Codex", read_codex),
    # Without a person Gemini would wait forever for the answer to a question.
    "gemini": HookHost("a Gemini CLI", read_gemini, write_gemini),
    "qwen-code": HookHost("a Qwen Code", read_qwen, can_ask=True),
    "copilot": HookHost("a Copilot CLI", read_copilot, write_copilot, can_ask=True),
    # Cursor accepts a question before a tool, but does not ask its user.
    "cursor": HookHost("a Cursor", read_cursor, write_cursor),
    "antigravity": HookHost("an Antigravity", read_antigravity, write_antigravity, can_ask=True, reads_files=True),
    # Plugins cannot ask the user; pi may run without one.
    "opencode": HookHost("an opencode", read_opencode),
    "kilo": HookHost("a Kilo", read_opencode),
    "pi": HookHost("a pi", translate_tool),
    "cline": HookHost("a Cline", read_cline),
}


def _add_route(name: str, host: HookHost) -> None:
    def answer(call: Call) -> Response:
        read = partial(host.read, is_local=call.caller.person is None) if host.reads_files else host.read
        return answer_event(call, name, read, host.write, can_ask=host.can_ask)

    answer.__name__ = name
    endpoint = Endpoint("POST", f"/hooks/{name}", f"Answer {host.title} hook event", of_folder=True, reads=True)
    api.route(endpoint)(answer)


for _name, _host in HOSTS.items():
    _add_route(_name, _host)
