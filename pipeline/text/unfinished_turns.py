"""Recognize the messages that hosts write when a turn is interrupted or fails. The person's words in it are kept."""

import re

USER = "user"
# Hosts write these as messages of the user.
_INTERRUPTED = re.compile(
    r"\A\s*(?:\[Request interrupted by user[^\]\n]*\]?|<turn_aborted>.*?(?:</turn_aborted>|\Z))", re.DOTALL
)
# Hosts write these as the agent's answer.
_FAILED = re.compile(
    r"\A\s*(?:\[?API Error(?:[:(·\]]|\s+[(·]|\s+\d{3}\b|\s*\Z)"
    r"|\{\s*\"(?:type\"\s*:\s*\"error\"|error\"\s*:\s*\{)"
    r"|(?:Prompt is too long|Credit balance is too low|Invalid API key|Execution error|Request timed out"
    r"|Internal server error|Connection error|Claude (?:AI )?usage limit reached|You've (?:hit|reached) your \w+ limit"
    r"|No response requested)[^\n]{0,120}\s*\Z)"
)


def is_host_text(role: str, content: str) -> bool:
    """Return whether a message is only a notice of an interruption, or an error instead of an answer."""
    if role != USER:
        return _FAILED.match(content) is not None
    notice = _INTERRUPTED.match(content)
    return notice is not None and not content[notice.end() :].strip()
