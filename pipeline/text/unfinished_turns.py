"""Recognize turns that the user interrupted or that the host answered with an error: nothing of them is stored."""

import re
from collections.abc import Iterable

USER = "user"
# Hosts write these as messages of the user. The reader of a host's records writes them for a host that has flags.
INTERRUPTED = "[Request interrupted by user]"
_INTERRUPTED = re.compile(
    r"\A\s*(?:\[Request interrupted by user[^\]\n]*\]?|<turn_aborted>.*?(?:</turn_aborted>|\Z))", re.DOTALL
)
# Hosts write these as the agent's answer.
FAILED = "API Error:"
_FAILED = re.compile(
    r"\A\s*(?:\[?API Error(?:[:(·\]]|\s+[(·]|\s+\d{3}\b|\s*\Z)"
    r"|\{\s*\"(?:type\"\s*:\s*\"error\"|error\"\s*:\s*\{)"
    r"|(?:Prompt is too long|Credit balance is too low|Invalid API key|Execution error|Request timed out"
    r"|Internal server error|Connection error|Claude (?:AI )?usage limit reached|You've (?:hit|reached) your \w+ limit"
    r"|No response requested)[^\n]{0,120}\s*\Z)"
)


def find_finished(messages: Iterable[tuple[str, str]]) -> list[int]:
    """Return the positions of the messages of finished turns, given the role and the content of each message.

    A turn starts with a message of the user. It is unfinished if a notice of an interruption follows, or if its last
    answer is an error. The notices are left out too.
    """
    finished: list[int] = []
    turn: list[int] = []
    has_failed = False
    for number, (role, content) in enumerate(messages):
        if role != USER:
            has_failed = _FAILED.match(content) is not None
            turn += [] if has_failed else [number]
            continue
        notice = _INTERRUPTED.match(content)
        if notice is None:
            finished += [] if has_failed else turn
        has_words = notice is None or content[notice.end() :].strip()
        turn, has_failed = [number] if has_words else [], False
    return finished if has_failed else finished + turn
