"""What recall and the list of facts tell of now, of then, and when the time comes."""

from datetime import UTC, datetime

import pytest

from pipeline.recall import search
from tests.fakes.in_process import fit_intents

PORT = "/v1/facts/staging/port"
JANUARY, FEBRUARY, MARCH = (f"2026-0{month}-01T00:00:00.000Z" for month in (1, 2, 3))
NOW, SOON, LATER = (f"2026-0{month}-15T12:00:00.000Z" for month in (6, 7, 8))
QUESTION = "which port does staging use"


class Clock:
    """The present, as everything in this process is told it."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self.set(NOW)

    def set(self, moment):
        present = datetime.fromisoformat(moment).astimezone(UTC)

        class Frozen(datetime):
            @classmethod
            def now(cls, tz=None):
                return present.astimezone(tz)

        # Everything asks `pipeline.kernel.times`, except recall, which also needs the day.
        self._monkeypatch.setattr("pipeline.kernel.times.datetime", Frozen)
        self._monkeypatch.setattr(search, "datetime", Frozen)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def computed_texts(monkeypatch):
    """List the queries whose answers were computed and not taken from the kept ones."""
    asked = []
    answer = search._answer

    def noting(reader, query, *moments):
        asked.append(query.text)
        return answer(reader, query, *moments)

    monkeypatch.setattr(search, "_answer", noting)
    return asked


def put_fact(client, value, path=PORT, **fields):
    answer = client.put(path, {"value": value, **fields})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def recall_texts(client, query=QUESTION, **fields):
    return [hit["content"] for hit in client.recall(query, **fields)["results"]]


def list_facts(client, **query):
    items = client.get("/v1/facts", query_string=query).get_json()["items"]
    return sorted((fact["subject"], fact["value"]) for fact in items)


def test_recall_returns_only_the_current_fact_value(client, digested):
    for value, begins in ((1111, JANUARY), (2222, FEBRUARY), (3333, MARCH)):
        put_fact(client, value, valid_from=begins)
    assert recall_texts(client) == ["staging port: 3333"]
    digested()
    assert recall_texts(client) == ["staging port: 3333"]
    assert recall_texts(client, "") == ["staging port: 3333"]


@pytest.mark.parametrize("query", [QUESTION, ""])
@pytest.mark.parametrize(
    ("moment", "then"),
    [
        ("2025-12-31T23:59:59.999Z", []),
        (JANUARY, ["staging port: 1111"]),
        ("2026-01-31T23:59:59.999Z", ["staging port: 1111"]),
        ("2026-02-01T01:00:00+01:00", ["staging port: 2222"]),
        (MARCH, []),
        ("2026-04-01T00:00:00Z", []),
    ],
)
def test_recall_as_of_returns_the_value_valid_at_that_time(client, clock, query, moment, then):
    put_fact(client, 2222, valid_from=FEBRUARY)
    put_fact(client, 1111, valid_from=JANUARY)
    client.delete(PORT, query_string={"valid_to": MARCH})
    assert recall_texts(client, query, as_of=moment) == then


def test_the_value_then_is_found_by_meaning_too(client, digested):
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 2222, valid_from=FEBRUARY)
    digested()
    answer = client.recall(QUESTION, as_of=JANUARY, explain=True)
    assert [hit["content"] for hit in answer["results"]] == ["staging port: 1111"]
    assert answer["channels"]["dense"]["state"] == "ok"


@pytest.mark.parametrize("query", ["deploy", ""])
def test_recall_as_of_omits_later_memories(client, query):
    client.write("The deploy failed", occurred_at=JANUARY)
    client.write("The deploy passed", occurred_at=FEBRUARY)
    assert recall_texts(client, query, as_of="2026-01-15T00:00:00Z") == ["The deploy failed"]
    assert set(recall_texts(client, query, as_of=FEBRUARY)) == {"The deploy failed", "The deploy passed"}


def test_recall_as_of_is_not_crowded_out_by_later_memories(client):
    put_fact(client, 1111, valid_from=JANUARY)
    items = [{"content": f"staging port note {number}", "occurred_at": MARCH} for number in range(200)]
    client.post("/v1/memories/batch", {"items": items})
    put_fact(client, 2222, valid_from=FEBRUARY)
    assert recall_texts(client, as_of=JANUARY, k=1) == ["staging port: 1111"]


def test_late_history_changes_recall_as_of_earlier_times(client, computed_texts):
    put_fact(client, 2222, valid_from=FEBRUARY)
    assert recall_texts(client, as_of=JANUARY) == []
    put_fact(client, 1111, valid_from=JANUARY)
    assert recall_texts(client, as_of=JANUARY) == ["staging port: 1111"]
    assert recall_texts(client) == ["staging port: 2222"]


def test_archived_fact_is_omitted_from_recall_as_of(client):
    fact_id = put_fact(client, 1111, valid_from=JANUARY)["id"]
    client.delete(f"/v1/memories/{fact_id}")
    assert recall_texts(client, as_of=FEBRUARY) == []
    assert list_facts(client, as_of=FEBRUARY) == []


def test_owned_fact_is_shown_as_of_a_time_only_to_its_owner(client):
    put_fact(client, 1111, valid_from=JANUARY, scope={"kind": "agent", "id": "a1"})
    put_fact(client, 2222, valid_from=FEBRUARY, scope={"kind": "agent", "id": "a1"})
    assert recall_texts(client, as_of=JANUARY) == []
    assert recall_texts(client, as_of=JANUARY, viewer={"agent": "a1"}) == ["staging port: 1111"]
    assert recall_texts(client, viewer={"agent": "a1"}) == ["staging port: 2222"]


def test_a_value_appears_when_its_time_comes(client, clock, computed_texts):
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 2222, valid_from=SOON)
    before, at, after = "2026-07-15T11:59:59.999Z", SOON, LATER
    for moment, value in ((NOW, 1111), (before, 1111), (at, 2222), (after, 2222)):
        clock.set(moment)
        assert recall_texts(client) == recall_texts(client) == recall_texts(client, "") == [f"staging port: {value}"]
        assert client.get(PORT).get_json()["value"] == value
        assert ("staging", value) in list_facts(client, as_of=moment)


def test_an_answer_is_kept_until_a_value_turns(container, client, clock, computed_texts):
    fit_intents(container)
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 2222, valid_from=SOON)
    clock.set("2026-07-15T11:00:00Z")
    assert [recall_texts(client) for _ in range(3)] == [["staging port: 1111"]] * 3
    assert len(computed_texts) == 1
    clock.set(SOON)
    assert [recall_texts(client) for _ in range(3)] == [["staging port: 2222"]] * 3
    assert len(computed_texts) == 2


def test_a_value_is_gone_when_its_end_comes(client, clock):
    put_fact(client, 1111, valid_from=JANUARY)
    client.delete(PORT, query_string={"valid_to": SOON})
    # On the same day, as answers are kept for no longer than a day.
    clock.set("2026-07-15T11:00:00Z")
    assert recall_texts(client) == ["staging port: 1111"]
    clock.set(SOON)
    assert recall_texts(client) == recall_texts(client, "") == []
    assert client.get(PORT).status_code == 404
    assert recall_texts(client, as_of=NOW) == ["staging port: 1111"]


def test_a_value_that_begins_later_is_found_by_meaning_when_its_time_comes(client, clock, digested):
    put_fact(client, 2222, valid_from=SOON)
    digested()
    assert recall_texts(client) == []
    clock.set(SOON)
    assert recall_texts(client) == ["staging port: 2222"]


def test_future_value_is_returned_as_of_a_future_time(client, clock):
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 2222, valid_from=SOON)
    assert recall_texts(client, as_of=LATER) == ["staging port: 2222"]


def test_new_fact_value_is_recalled_immediately(client):
    put_fact(client, 1111)
    assert recall_texts(client) == ["staging port: 1111"]
    put_fact(client, 2222)
    assert recall_texts(client) == ["staging port: 2222"]
    client.delete(PORT)
    assert recall_texts(client) == []


def test_restored_fact_value_is_recalled_again(client):
    fact_id = put_fact(client, 1111, valid_from=JANUARY)["id"]
    client.delete(f"/v1/memories/{fact_id}")
    assert recall_texts(client) == []
    client.post(f"/v1/memories/{fact_id}/restore")
    assert recall_texts(client) == ["staging port: 1111"]


def test_value_valid_again_is_found_by_words_and_by_meaning(client, digested):
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 1111, valid_from=MARCH)
    put_fact(client, 2222, valid_from=FEBRUARY)
    assert recall_texts(client) == ["staging port: 1111"]
    digested()
    assert recall_texts(client) == ["staging port: 1111"]
    assert recall_texts(client, as_of=FEBRUARY) == ["staging port: 2222"]


def test_facts_as_of_a_date_are_listed(client):
    put_fact(client, 1111, valid_from=JANUARY)
    put_fact(client, 2222, valid_from=MARCH)
    put_fact(client, "eu", path="/v1/facts/billing/region", valid_from=FEBRUARY)
    put_fact(client, "anna", path="/v1/facts/search/owner", valid_from=JANUARY)
    client.delete("/v1/facts/search/owner", query_string={"valid_to": FEBRUARY})
    believed = {
        "2025-12-31T00:00:00Z": [],
        "2026-01-15T00:00:00Z": [("search", "anna"), ("staging", 1111)],
        "2026-02-15T00:00:00Z": [("billing", "eu"), ("staging", 1111)],
        MARCH: [("billing", "eu"), ("staging", 2222)],
    }
    assert {moment: list_facts(client, as_of=moment) for moment in believed} == believed
    assert list_facts(client, as_of=MARCH, subject="staging") == [("staging", 2222)]
    assert len(list_facts(client)) == 4
