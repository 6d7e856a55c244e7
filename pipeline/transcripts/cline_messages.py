"""Read the messages of Cline and of the agents made from it, which share their forms."""

import re
from collections.abc import Mapping
from typing import Any

from pipeline.store.turns import Role
from pipeline.transcripts.documents import parse_json
from pipeline.transcripts.fields import as_list, as_mapping, as_text, list_blocks, output_text
from pipeline.transcripts.session_log import LeftOut, SessionLog
from pipeline.transcripts.tool_names import record_call, record_result

# The person's words, in a prompt or in the result of a tool that asked or was rejected.
_PERSON = re.compile(r"<(task|feedback|user_message|answer|user_input)(?: [^>]*)?>(.*?)</\1>", re.DOTALL)
# Files, folders and pages that the person mentioned, in full.
_MENTIONED = re.compile(
    r"<(file_content|folder_content|url_content|file_attachments|workspace_diagnostics|git_commit|git_working_state"
    r"|terminal_output|files)(?: [^>]*)?>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_ENVIRONMENT = re.compile(r"\s*<environment_details>")
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_RESULT = re.compile(r"\s*\[\w+(?: for '.*?')?\] Result:\s*(.*)", re.DOTALL)
_XML_KEY = "xml#"
_HEAD_CHARS = 300
_OUTPUT = re.compile(r"\ACommand (?:executed|failed)")

# Before models called tools with JSON, the call was XML in the answer.
_XML_TOOLS = (
    "execute_command|write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|edit_file|read_file"
    "|search_files|list_files|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|new_task"
    "|attempt_completion|ask_followup_question|plan_mode_respond|switch_mode|update_todo_list"
)
_XML_CALL = re.compile(rf"<({_XML_TOOLS})>(.*?)</\1>", re.DOTALL)
_XML_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_XML_THINKING = re.compile(r"<thinking>.*?</thinking>\s*", re.DOTALL)
# Tools whose argument is said to the person.
_SPOKEN = {"attempt_completion": "result", "ask_followup_question": "question", "plan_mode_respond": "response"}


class ClineLog(SessionLog):
    """A session's entries. `is_tagged`: the person's words are always in tags, all other text is the program's."""

    is_tagged = False

    def take_messages(self, messages: Any) -> None:
        """Read the messages of a session."""
        for number, message in enumerate(map(as_mapping, as_list(messages))):
            metadata = as_mapping(message.get("metadata"))
            is_summary = message.get("isSummary") or message.get("isTruncationMarker")
            if is_summary or as_text(metadata.get("kind")).startswith("compaction"):
                self.left_out[LeftOut.SUMMARY] += 1
                continue
            if metadata.get("displayRole") == "system":
                # The text of a hook.
                self.left_out[LeftOut.INJECTED] += 1
                continue
            key = as_text(message.get("id")) or f"{message.get('ts') or ''}#{number}"
            for position, block in enumerate(list_blocks(message.get("content"))):
                name = f"{key}.{position}" if position else key
                if message.get("role") == "user":
                    self._take_input(block, message.get("ts"), name)
                elif message.get("role") == "assistant":
                    self._take_answer(block, message.get("ts"), name)
        self.drop_open_calls()

    def _take_input(self, block: Mapping[str, Any], at: Any, key: str) -> None:
        if block.get("type") == "tool_result":
            self._take_result(as_text(block.get("tool_use_id")), block, at, key)
        elif block.get("type") != "text":
            self.left_out[LeftOut.INJECTED] += 1
        elif result := _RESULT.match(as_text(block.get("text"))):
            # Without output, the next block is the output.
            if result[1].strip():
                self._finish_xml(result[1])
            self._take_words(result[1], at, key)
        else:
            self._take_text(as_text(block.get("text")), at, key)

    def _take_text(self, text: str, at: Any, key: str) -> None:
        if folder := _FOLDER.search(text):
            # The format has no other field for it in old tasks.
            self.learn(cwd=folder[1])
        if _PERSON.search(text):
            self._finish_xml(text)
            self._take_words(text, at, key)
        elif _ENVIRONMENT.match(text):
            self.left_out[LeftOut.INJECTED] += 1
        elif self._finish_xml(text):
            self.left_out[LeftOut.OUTPUT] += 1
        elif self.is_tagged:
            self.left_out[LeftOut.INJECTED] += 1
        else:
            self.say(Role.USER, text, at, key)

    def _take_words(self, text: str, at: Any, key: str) -> None:
        for number, match in enumerate(_PERSON.finditer(text)):
            self.say(Role.USER, _MENTIONED.sub("", match[2]), at, f"{key}#{number}" if number else key)

    def _take_result(self, call: str, block: Mapping[str, Any], at: Any, key: str) -> None:
        content = parse_json(block.get("content")) if _is_json(block.get("content")) else block.get("content")
        results = [as_mapping(result) for result in as_list(content) or [content]]
        for number, result in enumerate(results):
            if not isinstance(result.get("success"), bool):
                continue
            one = f"{call}.{number}" if number else call
            output = as_text(result.get("result")) or as_text(result.get("error"))
            record_result(self, one, ok=result["success"], output=output)
        if call in self.calls:
            output = output_text(content)
            self._finish(call, output, failed=True if block.get("is_error") else bool(_find_failure(output)))
        self._take_words(output_text(content), at, key)

    def _take_answer(self, block: Mapping[str, Any], at: Any, key: str) -> None:
        kind = block.get("type")
        if kind == "text":
            self._take_answer_text(as_text(block.get("text")), at, key)
        elif kind == "tool_use":
            name, arguments = as_text(block.get("name")), as_mapping(block.get("input"))
            if name in _SPOKEN:
                self.say(Role.ASSISTANT, arguments.get(_SPOKEN[name]), at, key)
            else:
                self._record(as_text(block.get("id")) or key, name, arguments, at)
        else:
            self.left_out[LeftOut.THINKING] += 1

    def _record(self, key: str, name: str, arguments: Mapping[str, Any], at: Any) -> None:
        commands = as_list(arguments.get("commands"))
        if len(commands) < 2:
            record_call(self, key, name, arguments, at)
            return
        # Each command has a result.
        for number, command in enumerate(commands):
            record_call(self, f"{key}.{number}" if number else key, name, {"commands": [command]}, at)

    def _take_answer_text(self, text: str, at: Any, key: str) -> None:
        calls = list(_XML_CALL.finditer(text))
        words = [_XML_THINKING.sub("", _XML_CALL.sub("", text)).strip()]
        spoken = (
            dict(_XML_ARGUMENT.findall(call[2])).get(_SPOKEN[call[1]], "") for call in calls if call[1] in _SPOKEN
        )
        self.say(Role.ASSISTANT, "\n\n".join(filter(None, [*words, *spoken])), at, key)
        for number, call in enumerate(calls):
            if call[1] not in _SPOKEN:
                # The id says that the call waits for a result in a text.
                record_call(self, f"{_XML_KEY}{key}.{number}", call[1], dict(_XML_ARGUMENT.findall(call[2])), at)

    def _finish_xml(self, output: str) -> bool:
        """Add the oldest open call of an answer's text with its output; return whether there was one."""
        key = next((key for key in self.calls if key.startswith(_XML_KEY)), None)
        if key is None:
            return False
        self._finish(key, output, failed=_find_failure(output))
        return True

    def _finish(self, key: str, output: str, *, failed: bool | None) -> None:
        if "user denied" in output[:_HEAD_CHARS]:
            self.drop_call(key)
        else:
            record_result(self, key, ok=None if failed is None else not failed, output=output)


def unwrap_prompt(text: str) -> str:
    """Return what the person wrote of the text of a prompt, which may be in tags."""
    tagged = [_MENTIONED.sub("", match[2]) for match in _PERSON.finditer(text)]
    return "\n".join(tagged) if tagged else text


def _find_failure(output: str) -> bool | None:
    """Return whether an output says that its call failed; None if it does not tell."""
    head = output.lstrip()[:_HEAD_CHARS]
    if head.startswith(("Error", "The tool execution failed", "[ERROR]", "<error>")) or '"status":"error"' in head:
        return True
    return False if _OUTPUT.match(head) or "successfully" in head else None


def _is_json(content: Any) -> bool:
    return isinstance(content, str) and content.lstrip()[:1] in ("{", "[")
