"""What a host writes about an interrupted or failed turn is left out, and what was said in it is kept."""

import pytest

from pipeline.text.own_words import is_host_text

INTERRUPTIONS = [
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
    "\n[Request interrupted by user]\n",
    "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
    "<turn_aborted>The user interrupted the previous turn",
]
ERRORS = [
    'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server error"}}',
    "API Error: Request was aborted.",
    "API Error (Request timed out.)",
    "API Error",
    "[API Error: You have exhausted your capacity on this model.]",
    "Prompt is too long",
    "Credit balance is too low",
    "Invalid API key · Please run /login",
    "Claude AI usage limit reached|1760000000",
    "You've hit your weekly limit · resets 9am",
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    '{"error": {"code": 429, "message": "Resource has been exhausted"}}',
]
# Answers and prompts that only mention an error or an interruption.
ORDINARY = [
    "API Error handling is in api/errors.py.",
    "API errors are retried three times.",
    "The request was interrupted by user 42, see the log.",
    "I changed the text of [Request interrupted by user] in the parser.",
    "Prompt is too long for the old model, so the summary is now split.\nThe new limit is 200k.",
    '{"ports": [5433]}',
]


def keep(*messages):
    return [text for role, text in messages if not is_host_text(role, text)]


@pytest.mark.parametrize("notice", INTERRUPTIONS)
def test_the_words_of_an_interrupted_turn_are_kept_without_the_notice(notice):
    broken = [("user", "Deploy only on Fridays"), ("assistant", "I will"), ("user", notice)]
    assert keep(*broken, ("user", "Go on")) == ["Deploy only on Fridays", "I will", "Go on"]


@pytest.mark.parametrize("error", ERRORS)
def test_the_words_of_a_failed_turn_are_kept_without_the_error(error):
    broken = [("user", "Staging is on port 6543"), ("assistant", "Looking"), ("assistant", error)]
    assert keep(*broken) == ["Staging is on port 6543", "Looking"]


@pytest.mark.parametrize("text", ORDINARY)
def test_a_message_that_mentions_an_error_is_kept(text):
    assert keep(("user", text), ("assistant", text)) == [text, text]


def test_text_after_the_notice_in_the_same_message_is_kept():
    text = "[Request interrupted by user]\nNo, use pnpm"
    assert keep(("user", text)) == [text]
