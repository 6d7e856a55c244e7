"""Field reports: entries for the user, for the project and of a plugin all run, and each delivers the same event."""
# Reported of comparable tools: anthropics/claude-code#76297, rjmurillo/ai-agents#3183

import threading

import pytest

from pipeline.kernel.errors import StoreUnavailable
from pipeline.prompt import deliveries as hook_deliveries
from pipeline.prompt.deliveries import HookDeliveries

SESSION = ("claude-code", "default", "s1")


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(hook_deliveries, "time", clock)
    return clock


@pytest.fixture
def deliver():
    """Deliver an event, and say whether it was answered anew."""
    deliveries, answered = HookDeliveries(), []

    def run(name, session=SESSION, **event):
        before = len(answered)
        deliveries.answer(session, name, event, lambda: answered.append(event), lambda _first: None)
        return len(answered) > before

    return run


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("UserPromptSubmit", {"prompt": "go on"}),
        ("UserPromptSubmit", {"prompt": "go on", "prompt_id": "p1"}),
        ("PreToolUse", {"tool_name": "Bash", "tool_use_id": "t1"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_use_id": "t1"}),
        ("PostToolUse", {"tool_name": "Bash"}),
        ("PreToolUse", {"tool_name": "Bash", "timestamp": "2026-01-01T00:00:00Z"}),
    ],
)
def test_the_same_event_is_answered_once(deliver, name, fields):
    assert [deliver(name, **fields) for _ in range(3)] == [True, False, False]


def test_repeated_prompts_and_stops_are_delivered(deliver, clock):
    assert deliver("UserPromptSubmit", prompt="go on")
    assert deliver("Stop")
    assert deliver("UserPromptSubmit", prompt="go on")
    clock.now += hook_deliveries.WITHOUT_ID_S + 0.1
    assert deliver("UserPromptSubmit", prompt="go on")
    assert deliver("UserPromptSubmit", prompt="go on", prompt_id="p1")
    assert deliver("UserPromptSubmit", prompt="go on", prompt_id="p2")
    assert deliver("UserPromptSubmit", prompt="go on", prompt_id="p2", session=("claude-code", "default", "s2"))
    assert deliver("UserPromptSubmit", prompt="go on", prompt_id="p2", session=("codex", "default", "s1"))
    clock.now += hook_deliveries.WITH_ID_S + 0.1
    assert deliver("UserPromptSubmit", prompt="go on", prompt_id="p2")


def test_an_agent_that_was_refused_may_try_the_same_at_once(deliver):
    assert deliver("PreToolUse", tool_name="Bash")
    assert deliver("PreToolUse", tool_name="Bash")


def test_calls_side_by_side_do_not_hide_each_others_repetition(deliver):
    calls = [("PreToolUse", "t1"), ("PreToolUse", "t2"), ("PostToolUse", "t1")]
    assert [deliver(name, tool_use_id=call) for name, call in calls] == [True, True, True]
    assert [deliver(name, tool_use_id=call) for name, call in calls[1:]] == [False, False]


def test_of_two_that_come_at_once_both_have_the_same_answer():
    deliveries, began, go_on, answers = HookDeliveries(), threading.Event(), threading.Event(), []

    def decide():
        began.set()
        assert go_on.wait(20)
        return "ask"

    def send():
        answers.append(deliveries.answer(SESSION, "PreToolUse", {"tool_name": "x"}, decide, lambda first: first))

    senders = [threading.Thread(target=send) for _ in range(2)]
    senders[0].start()
    assert began.wait(20)
    senders[1].start()
    go_on.set()
    for one in senders:
        one.join()
    assert answers == ["ask", "ask"]


def test_where_the_first_fails_the_second_says_nothing():
    deliveries, event = HookDeliveries(), {"tool_use_id": "t1"}

    def fail():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        deliveries.answer(SESSION, "PreToolUse", event, fail, lambda first: first)
    assert deliveries.answer(SESSION, "PreToolUse", event, fail, lambda first: first) is None


def test_a_delivery_that_met_a_busy_store_is_handled_again():
    deliveries, event = HookDeliveries(), {"tool_use_id": "t1"}

    def fail():
        raise StoreUnavailable("busy")

    with pytest.raises(StoreUnavailable):
        deliveries.answer(SESSION, "PostToolUse", event, fail, lambda first: first)
    assert deliveries.answer(SESSION, "PostToolUse", event, lambda: "recorded", lambda first: first) == "recorded"
