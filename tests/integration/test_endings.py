"""Memories that end, and those that are told to who asks only."""

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.kernel.times import utc_text

SOON, PAST = "2999-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"
TEXT = "The maintenance window is on the big cluster"


def hook(client, prompt, session="s1"):
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "", "prompt": prompt}
    return client.post("/hooks/claude-code", event).get_data(as_text=True)


def test_expired_memory_is_excluded_from_recall_and_listings(client):
    kept = client.write(TEXT, expires_at=SOON)
    ended = client.write("The maintenance window was on the small cluster")
    client.patch(f"/v1/memories/{ended}", {"expires_at": PAST})
    assert client.find_ids("maintenance window cluster") == [kept]
    assert [one["id"] for one in client.get("/v1/memories").get_json()["items"]] == [kept]
    assert client.get(f"/v1/memories/{ended}").get_json()["expires_at"] == PAST
    why = client.post("/v1/recall/why", {"query": "maintenance window", "id": ended}).get_json()
    assert f"filtered: it expired at {PAST}" in why["reasons"]


def test_an_answer_that_was_kept_ends_too(client):
    end = utc_text(datetime.now(UTC) + timedelta(seconds=0.4))
    kept = client.write(TEXT, expires_at=end)
    assert client.find_ids("maintenance window") == [kept]
    while utc_text(datetime.now(UTC)) <= end:
        pass
    assert client.find_ids("maintenance window") == []


def test_an_end_may_be_set_later(client):
    memory_id = client.write(TEXT)
    assert client.patch(f"/v1/memories/{memory_id}", {"expires_at": PAST}).status_code == 200
    assert client.find_ids("maintenance window") == []


def test_a_fact_that_ends_does_not_hold_any_more(client):
    client.write("x", kind="keyed_fact", details={"subject": "db", "attribute": "port", "value": 1}, expires_at=SOON)
    (fact,) = client.get("/v1/facts").get_json()["items"]
    assert fact["valid_to"] == SOON


@pytest.mark.parametrize("field", [{"expires_at": "tomorrow"}, {"expires_at": PAST}, {"sensitivity": "top secret"}])
def test_invalid_expiry_fields_are_rejected_by_name(client, field):
    answer = client.post("/v1/memories", {"content": TEXT, **field})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"] == next(iter(field))


def test_private_memory_is_recalled_but_never_injected(client, digested):
    private = client.write(TEXT, sensitivity="private", kind="decision")
    digested()
    assert client.find_ids("maintenance window cluster") == [private]
    assert hook(client, "which cluster has the maintenance window?") == ""
    assert hook(client, "") == ""
    start = {"hook_event_name": "SessionStart", "session_id": "s2", "cwd": "", "source": "startup"}
    assert client.post("/hooks/claude-code", start).get_data(as_text=True) == ""
    prepared = client.post("/v1/prepare", {"message": "which cluster has the maintenance window?"}).get_json()
    assert TEXT not in str(prepared)
    client.patch(f"/v1/memories/{private}", {"sensitivity": "normal"})
    assert TEXT in hook(client, "which cluster has the maintenance window?")


def test_secret_adjacent_memory_is_never_injected(client):
    memory_id = client.write(f"The deploy key is {'ghp_' + 'a1B2' * 9}", kind="decision")
    assert client.get(f"/v1/memories/{memory_id}").get_json()["sensitivity"] == "secret-adjacent"
    assert hook(client, "what is the deploy key?") == ""
    assert client.find_ids("deploy key") == [memory_id]
