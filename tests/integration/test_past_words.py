"""A prompt gets what its person said in earlier sessions, whether or not a memory was made of it."""

import pytest

from pipeline.kernel.store import agent_sessions
from pipeline.kernel.times import utc_now
from pipeline.prompt.line import BELOW_BAR
from tests.fakes.in_process import flush_notes
from tests.fakes.statements import MarkedStatements

DRAWINGS = "We keep the drawings of the turbine in the vault of the Graz office"
KEPT = f"decision: {DRAWINGS}, ask Deniz for the key"
ASKED = "Who opens the vault of the Graz office, where the drawings of the turbine are?"
HEADER = "What the user said in earlier sessions:"


@pytest.fixture
def worker(worker):
    worker._statements = MarkedStatements()
    worker._classifier = lambda *_given: worker._statements
    return worker


@pytest.fixture
def say(client, container, digested):
    def run(*texts, session="s1"):
        messages = [{"role": "user", "content": text} for text in texts]
        answer = client.post("/v1/turns", {"session_id": session, "messages": messages})
        assert answer.status_code == 202
        flush_notes(container)
        # Capture writes a memory, which is digested in turn.
        digested()
        digested()

    return run


@pytest.fixture
def ask(client, container):
    def run(prompt=ASKED, session="s2"):
        body = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt}
        answer = client.post("/hooks/claude-code", body).get_json(silent=True)
        flush_notes(container)
        return "" if answer is None else answer["hookSpecificOutput"]["additionalContext"]

    return run


def test_a_message_of_another_session_is_quoted_once(say, ask):
    say(DRAWINGS)
    assert ask(session="s1") == ""
    first, second, other = ask(), ask(), ask(session="s3")
    assert first.splitlines() == [HEADER, f"- [just now] “{DRAWINGS}”"]
    assert second == ""
    assert DRAWINGS in other


@pytest.mark.parametrize(
    "text",
    [
        "Where are the drawings of the turbine in the vault of the Graz office?",
        "turbine drawings vault",
        f"forget that {DRAWINGS}",
        f"```\n{DRAWINGS}\n```",
        "pls forget the vault of the Graz office with the drawings of the turbine",
        "ok, can you forget the drawings of the turbine in the vault of the Graz office?!",
        "Vergiss bitte die drawings of the turbine, vault of the Graz office",
    ],
)
def test_questions_fragments_orders_and_pasted_text_are_not_shown(say, ask, text):
    say(text)
    assert ask() == ""


def test_thanks_get_nothing(say, ask):
    say("thanks a lot for the great work on the drawings of the turbine")
    assert ask("thanks, great work!") == ""


def test_message_and_the_memory_made_from_it_are_shown_once(client, say, ask):
    say(KEPT)
    (memory,) = client.get("/v1/memories").get_json()["items"]
    assert ask().splitlines() == [
        HEADER,
        f"- [{memory['id'][-8:]} · {memory['kind']} · just now] “{KEPT}”",
    ]
    client.delete(f"/v1/memories/{memory['id']}")
    assert ask(session="s3") == ""


def test_a_message_that_a_later_one_ended_is_not_shown(say, ask):
    say(DRAWINGS)
    say(
        "the drawings of the turbine moved to the archive in Linz, the vault of the Graz office is closed", session="s3"
    )
    answer = ask()
    assert "Linz" in answer
    assert DRAWINGS not in answer


def test_a_session_that_became_incognito_is_not_shown(container, say, ask):
    say(DRAWINGS)
    with container.workspace("default").database.write() as db:
        agent_sessions.begin_incognito(db, "s1", utc_now())
    assert ask() == ""


def test_convention_is_shown_again_when_a_prompt_contradicts_it(say, ask):
    said = "For the turbine drawings we export step files instead of dwg"
    say(said)
    about = "which turbine drawings do we export, step files?"
    assert [said in ask(about), said in ask(about)] == [True, False]
    assert said in ask("please export the turbine drawings as dwg step files")


def test_a_message_below_the_bar_is_recorded_as_left_out(client, say, ask):
    say(DRAWINGS)
    assert ask("Where are turbine parts listed?") == ""
    run = client.get("/v1/hook-runs").get_json()["items"][0]
    left = client.get(f"/v1/hook-runs/{run['id']}").get_json()["left_out"]
    assert [(one["text"], one["reason"]) for one in left if one["source"] == "message"] == [(DRAWINGS, BELOW_BAR)]
    assert 0 < left[0]["score"] < 0.55
