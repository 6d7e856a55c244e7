"""Messages of turns that the user interrupted or that failed are left out."""

import pytest

from pipeline.text.unfinished_turns import find_finished

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
    return [messages[number][1] for number in find_finished(messages)]


@pytest.mark.parametrize("notice", INTERRUPTIONS)
def test_an_interrupted_turn_is_dropped_with_its_answer(notice):
    before = [("user", "We use pnpm"), ("assistant", "Noted.")]
    broken = [("user", "Deploy only on Fridays"), ("assistant", "I will"), ("user", notice)]
    after = [("user", "Use Fridays and Mondays"), ("assistant", "Done.")]
    assert keep(*before, *broken, *after) == ["We use pnpm", "Noted.", "Use Fridays and Mondays", "Done."]
    assert keep(*broken) == []
    assert keep(("user", notice), *after) == ["Use Fridays and Mondays", "Done."]


@pytest.mark.parametrize("error", ERRORS)
def test_a_turn_that_ends_with_an_error_is_dropped(error):
    broken = [("user", "Staging is on port 6543"), ("assistant", "Looking"), ("assistant", error)]
    after = [("user", "Staging is on port 6543 now"), ("assistant", "Noted.")]
    assert keep(*broken, *after) == ["Staging is on port 6543 now", "Noted."]
    assert keep(*broken) == []


def test_a_turn_that_recovers_from_an_error_is_kept_without_the_error():
    turn = [("user", "We use pnpm"), ("assistant", ERRORS[0]), ("assistant", "Noted.")]
    assert keep(*turn) == ["We use pnpm", "Noted."]


@pytest.mark.parametrize("text", ORDINARY)
def test_a_message_that_mentions_an_error_is_kept(text):
    assert keep(("user", text), ("assistant", text)) == [text, text]


def test_text_after_the_notice_in_the_same_message_starts_a_new_turn():
    text = "[Request interrupted by user]\nNo, use pnpm"
    assert keep(("user", "Use npm"), ("user", text), ("assistant", "Noted.")) == [text, "Noted."]
