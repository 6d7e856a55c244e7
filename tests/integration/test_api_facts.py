"""Keyed facts over HTTP."""

from urllib.parse import quote

import pytest

from pipeline.kernel.store import changes

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PORT = "/v1/facts/staging/port"
EARLY, MIDDLE, LATE = (f"2026-0{month}-01T00:00:00.000Z" for month in (1, 2, 3))


@pytest.fixture
def reviewing(client, container, home):
    """A client of a workspace where doubtful memories wait for a person."""
    put_fact(client, "1111", valid_from=EARLY, path="/v1/facts/first/one")
    container.settings.paths.workspace("default").config.write_text("review = true\n")
    return client


def put_fact(client, value, path=PORT, **fields):
    answer = client.put(path, {"value": value, **fields})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def value(client, path=PORT, **query):
    answer = client.get(path, query_string=query)
    return None if answer.status_code == 404 else answer.get_json()["value"]


def history(client, path=PORT):
    return client.get(f"{path}/history").get_json()["items"]


def spans(client, path=PORT):
    return [(fact["value"], fact["valid_from"], fact["valid_to"]) for fact in history(client, path)]


def is_refused(answer, field):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return [error["loc"] for error in answer.get_json()["errors"]] == [field]


def test_a_new_value_closes_the_old(client):
    old = put_fact(client, 5432, valid_from=EARLY)
    new = put_fact(client, 6543, valid_from=MIDDLE)
    assert (old["outcome"], new["outcome"], new["replaced"]) == ("created", "created", old["id"])
    assert spans(client) == [(5432, EARLY, MIDDLE), (6543, MIDDLE, None)]
    assert value(client) == 6543


def test_a_fact_is_read_with_all_that_is_known_of_it(client):
    fact_id = put_fact(client, 5432, valid_from=EARLY, source="agent")["id"]
    assert client.get(PORT).get_json() == {
        "id": fact_id,
        "subject": "staging",
        "attribute": "port",
        "value": 5432,
        "valid_from": EARLY,
        "valid_to": None,
        "source": "agent",
        "trust": "trusted",
        "instructs": False,
        "scope": {"kind": "workspace", "id": None},
    }


def test_an_older_value_that_comes_late_leaves_the_present_as_it_is(client):
    put_fact(client, 6543, valid_from=LATE)
    late = put_fact(client, 5432, valid_from=EARLY)
    assert "replaced" not in late
    assert spans(client) == [(5432, EARLY, LATE), (6543, LATE, None)]


def test_any_instant_can_be_asked(client):
    put_fact(client, 6543, valid_from=MIDDLE)
    put_fact(client, 5432, valid_from=EARLY)
    asked = ("2025-12-31T23:59:59Z", EARLY, "2026-01-31T23:59:59.999Z", "2026-02-01T01:00:00+01:00", LATE)
    assert [value(client, as_of=moment) for moment in asked] == [None, 5432, 5432, 6543, 6543]


def test_value_repeated_later_outlives_a_late_arriving_older_value(client):
    first = put_fact(client, "CET", valid_from=EARLY)["id"]
    told_again = put_fact(client, "CET", valid_from=LATE)
    assert (told_again["outcome"], told_again["id"]) == ("merged", first)
    put_fact(client, "EST", valid_from=MIDDLE)
    assert spans(client) == [("CET", EARLY, MIDDLE), ("EST", MIDDLE, LATE), ("CET", LATE, None)]
    assert client.find_ids("staging port CET") == [history(client)[2]["id"]]


def test_negation_ends_a_value_without_a_successor(client):
    put_fact(client, 5432, valid_from=EARLY)
    ended = client.delete(PORT)
    assert (ended.status_code, ended.get_json()["value"]) == (200, 5432)
    assert client.get(PORT).status_code == 404
    assert client.delete(PORT).status_code == 404
    assert spans(client) == [(5432, EARLY, ended.get_json()["valid_to"])]


def test_value_can_be_ended_at_any_time_of_its_validity(client):
    put_fact(client, 5432, valid_from=EARLY)
    put_fact(client, 6543, valid_from=LATE)
    assert client.delete(PORT, query_string={"valid_to": MIDDLE}).get_json()["valid_to"] == MIDDLE
    assert (value(client, as_of=MIDDLE), value(client)) == (None, 6543)


def test_spellings_of_one_name_meet(client):
    put_fact(client, "UTC", path="/v1/facts/Staging%20Server/timeZone")
    put_fact(client, "CET", path="/v1/facts/staging-server/Time_Zone")
    assert value(client, "/v1/facts/stagingServer/time%20zone") == "CET"
    assert value(client, "/v1/facts/STAGING_SERVER/timezone") == "CET"
    assert len(history(client, "/v1/facts/the%20staging%20server/time-zone")) == 2


def test_a_name_that_may_mean_another_is_asked_about_and_not_merged(client):
    put_fact(client, "a", path="/v1/facts/staging/message")
    second = put_fact(client, "b", path="/v1/facts/staging/msg")
    assert second["similar"] == [{"subject": "staging", "attribute": "message"}]
    assert (value(client, "/v1/facts/staging/message"), value(client, "/v1/facts/staging/msg")) == ("a", "b")


def test_fact_name_that_may_mean_another_is_answered_with_a_suggestion(client):
    put_fact(client, "a", path="/v1/facts/staging/message")
    answer = client.get("/v1/facts/staging/msg")
    assert answer.status_code == 404
    assert "staging/message" in answer.get_json()["detail"]


@pytest.mark.parametrize("given", ["5432", "true", 5432, -1, 0, 1, 10**15, 0.5, 2.0, 1e300, True, False, "größer 漢字"])
@pytest.mark.parametrize("how", ["put", "post"])
def test_a_value_keeps_its_json_type(client, given, how):
    if how == "put":
        assert repr(put_fact(client, given)["value"]) == repr(given)
    else:
        details = {"subject": "staging", "attribute": "port", "value": given}
        client.write("a fact", kind="keyed_fact", details=details)
    assert repr(value(client)) == repr(given)


def test_true_is_another_value_than_one(client):
    put_fact(client, 1, valid_from=EARLY)
    assert put_fact(client, True, valid_from=MIDDLE)["outcome"] == "created"
    assert value(client) is True


@pytest.mark.parametrize("bad", ["", " \n", "\u200b", "x" * 2001, None, [1], {"a": 1}])
def test_a_value_that_cannot_be_taken_is_named(client, bad):
    answer = client.put(PORT, {"value": bad})
    assert is_refused(answer, "value")
    assert "x" * 99 not in answer.get_data(as_text=True)
    assert client.get("/v1/workspaces").get_json()["items"] == []


@pytest.mark.parametrize("bad", ["yesterday", "2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", 5])
def test_a_time_that_cannot_be_read_is_named(client, bad):
    put_fact(client, 1)
    assert is_refused(client.put(PORT, {"value": 1, "valid_from": bad}), "valid_from")
    for method, path, name in (("GET", PORT, "as_of"), ("GET", "/v1/facts", "as_of"), ("DELETE", PORT, "valid_to")):
        if bad != 5:  # a number is a moment in a query string: seconds since 1970
            assert is_refused(client.call(method, path, query_string={name: bad}), name)


@pytest.mark.parametrize("name", [" ", "--", "\u200b", "?", "x" * 201])
@pytest.mark.parametrize("field", ["subject", "attribute"])
def test_a_name_that_is_none_is_refused_by_every_route(client, name, field):
    put_fact(client, 1)
    path = "/v1/facts/{subject}/{attribute}".format(**{"subject": "s", "attribute": "a", field: quote(name)})
    assert is_refused(client.put(path, {"value": 1}), field)
    for answer in (client.get(path), client.get(f"{path}/history"), client.delete(path)):
        assert is_refused(answer, field)
    details = {"subject": "s", "attribute": "a", field: name, "value": 1}
    told = client.post("/v1/memories", {"content": "x", "kind": "keyed_fact", "details": details})
    assert is_refused(told, f"details.{field}")


@pytest.mark.parametrize("path", [PORT, f"{PORT}/history"])
def test_unknown_fact_is_not_found(client, path):
    assert client.get(path).status_code == 404
    assert client.delete(PORT).status_code == 404
    client.write("A memory")
    assert client.get(path).status_code == 404
    assert client.delete(PORT).status_code == 404


def test_facts_are_listed_newest_first_and_by_pages(client):
    for number in range(5):
        put_fact(client, number, path=f"/v1/facts/staging/key{number}")
    first = client.get("/v1/facts?limit=3").get_json()
    second = client.get(f"/v1/facts?limit=3&cursor={first['next_cursor']}").get_json()
    assert [fact["value"] for fact in first["items"] + second["items"]] == [4, 3, 2, 1, 0]
    assert second["next_cursor"] is None


def test_facts_are_listed_by_any_spelling_of_their_subject(client):
    put_fact(client, 1, path="/v1/facts/billing%20app/port")
    put_fact(client, 2, path="/v1/facts/staging/port")
    listed = client.get("/v1/facts", query_string={"subject": "billingApp"}).get_json()["items"]
    assert [fact["value"] for fact in listed] == [1]
    assert is_refused(client.get("/v1/facts", query_string={"subject": "--"}), "subject")


def test_each_scope_has_its_own_value(client):
    mine = {"kind": "agent", "id": "a1"}
    put_fact(client, "everyone's")
    assert "replaced" not in put_fact(client, "mine", scope=mine)
    assert (value(client), value(client, scope="agent:a1")) == ("everyone's", "mine")
    assert client.get(PORT, query_string={"scope": "agent:a2"}).status_code == 404
    assert [fact["value"] for fact in client.get("/v1/facts?scope=agent:a1").get_json()["items"]] == ["mine"]
    assert client.delete(PORT, query_string={"scope": "agent:a1"}).get_json()["value"] == "mine"
    assert value(client) == "everyone's"


def test_a_scope_without_its_owner_is_named(client):
    assert is_refused(client.put(PORT, {"value": 1, "scope": {"kind": "agent"}}), "scope.id")


@pytest.mark.parametrize("source", ["import", "ambient"])
def test_untrusted_source_cannot_end_a_fact_set_by_a_person(client, source):
    put_fact(client, 5432, valid_from=EARLY)
    assert put_fact(client, 6543, valid_from=MIDDLE, source=source)["outcome"] == "rejected"
    assert spans(client) == [(5432, EARLY, None)]


@pytest.mark.parametrize("source", ["import", "ambient"])
def test_untrusted_fact_change_waits_for_review_and_applies_once_accepted(reviewing, source):
    said = put_fact(reviewing, "5432 on the primary", valid_from=EARLY)["id"]
    offered = put_fact(reviewing, "6543 behind the proxy", valid_from=MIDDLE, source=source)
    assert (offered["outcome"], value(reviewing)) == ("candidate", "5432 on the primary")
    accepted = reviewing.post(f"/v1/candidates/{offered['id']}", {"action": "accept"})
    assert accepted.status_code == 200
    assert [fact["id"] for fact in history(reviewing)] == [said, offered["id"]]
    assert value(reviewing) == "6543 behind the proxy"


def test_an_accepted_candidate_ends_where_the_value_before_was_ended(reviewing):
    put_fact(reviewing, "5432 on the primary", valid_from=EARLY)
    offered = put_fact(reviewing, "6543 behind the proxy", valid_from=MIDDLE, source="import")["id"]
    reviewing.delete(PORT, query_string={"valid_to": LATE})
    reviewing.post(f"/v1/candidates/{offered}", {"action": "accept"})
    assert spans(reviewing)[-1] == ("6543 behind the proxy", MIDDLE, LATE)
    assert value(reviewing) is None


def test_a_candidate_that_was_rejected_and_brought_back_ends_nothing(reviewing):
    put_fact(reviewing, "5432 on the primary", valid_from=EARLY)
    offered = put_fact(reviewing, "6543 behind the proxy", valid_from=MIDDLE, source="import")["id"]
    reviewing.post(f"/v1/candidates/{offered}", {"action": "reject"})
    assert reviewing.post(f"/v1/memories/{offered}/restore").status_code == 200
    assert spans(reviewing) == [("5432 on the primary", EARLY, None)]


def test_import_may_set_a_fact_for_an_uncovered_period(client):
    put_fact(client, 6543, valid_from=MIDDLE)
    assert put_fact(client, 5432, valid_from=EARLY, source="import")["outcome"] == "created"
    assert spans(client) == [(5432, EARLY, MIDDLE), (6543, MIDDLE, None)]


@pytest.mark.parametrize(
    ("attribute", "secret"), [("note", SECRET), ("password", "correct7horse9battery"), ("password", 83749234987)]
)
@pytest.mark.parametrize("how", ["put", "post"])
def test_a_secret_is_never_stored(client, container, attribute, secret, how):
    path = f"/v1/facts/staging/{attribute}"
    if how == "put":
        assert "[REDACTED:" in put_fact(client, secret, path=path)["value"]
    else:
        details = {"subject": "staging", "attribute": attribute, "value": secret}
        client.write("a fact", kind="keyed_fact", details=details)
    assert "[REDACTED:" in value(client, path)
    with container.databases.get("default").read() as db:
        dump = "\n".join(db.iterdump())
    assert str(secret) not in dump


def test_a_keyed_fact_that_is_posted_is_one_that_is_put(client):
    put_fact(client, 5432, valid_from=EARLY)
    details = {"subject": "Staging", "attribute": "PORT", "value": 6543}
    posted = client.write("Port!", kind="keyed_fact", details=details, occurred_at=MIDDLE)
    assert spans(client) == [(5432, EARLY, MIDDLE), (6543, MIDDLE, None)]
    memory = client.get(f"/v1/memories/{posted}").get_json()
    assert (memory["content"], memory["details"]) == (
        "staging port: 6543",
        {"subject": "staging", "attribute": "port", "value": 6543},
    )
    again = put_fact(client, 6543, valid_from=LATE)
    assert (again["outcome"], again["id"]) == ("merged", posted)


@pytest.mark.parametrize("missing", ["subject", "attribute", "value"])
def test_a_posted_fact_says_all_three(client, missing):
    details = {"subject": "staging", "attribute": "port", "value": 1}
    del details[missing]
    answer = client.post("/v1/memories", {"content": "x", "kind": "keyed_fact", "details": details})
    assert is_refused(answer, f"details.{missing}")


def test_a_keyed_fact_without_a_key_is_refused_everywhere(client):
    bare = {"content": "Staging listens on 5432", "kind": "keyed_fact"}
    batch = {"items": [{"content": "x"}, bare]}
    source = {"items": [{"key": "k1", "digest": "d1", "memories": [bare]}]}
    answers = (
        client.post("/v1/memories", bare),
        client.post("/v1/memories/batch", batch),
        client.put("/v1/sources/s1/items", source),
    )
    for answer, start in zip(answers, ("", "items.1.", "items.0.memories.0."), strict=True):
        assert answer.status_code == 422
        missing = [f"{start}details.{name}" for name in ("subject", "attribute", "value")]
        assert [error["loc"] for error in answer.get_json()["errors"]] == missing
    assert client.get("/v1/memories").status_code == 404


@pytest.mark.parametrize("change", [{"content": "staging port: 1"}, {"details": {"value": 1}}])
def test_a_fact_is_changed_by_its_value_alone(client, change):
    fact_id = put_fact(client, 5432)["id"]
    assert client.patch(f"/v1/memories/{fact_id}", change).status_code == 409
    assert client.patch(f"/v1/memories/{fact_id}", {"pinned": True}).status_code == 200
    assert value(client) == 5432


def test_an_archived_value_comes_back_to_where_it_has_room(client):
    put_fact(client, 1, valid_from=EARLY)
    archived = put_fact(client, 2, valid_from=MIDDLE)["id"]
    client.delete(f"/v1/memories/{archived}")
    assert value(client) is None
    put_fact(client, 3, valid_from=LATE)
    assert client.post(f"/v1/memories/{archived}/restore").status_code == 200
    assert spans(client) == [(1, EARLY, MIDDLE), (2, MIDDLE, LATE), (3, LATE, None)]


def test_restored_value_ends_the_value_that_replaced_it(client):
    archived = put_fact(client, 2, valid_from=MIDDLE)["id"]
    client.delete(f"/v1/memories/{archived}")
    put_fact(client, 1, valid_from=EARLY)
    client.post(f"/v1/memories/{archived}/restore")
    assert spans(client) == [(1, EARLY, MIDDLE), (2, MIDDLE, None)]


def test_value_corrected_immediately_ends_nothing_when_restored(client):
    wrong = put_fact(client, 1, valid_from=EARLY)["id"]
    put_fact(client, 2, valid_from=EARLY)
    client.delete(f"/v1/memories/{wrong}")
    client.post(f"/v1/memories/{wrong}/restore")
    assert value(client) == 2


def test_purging_a_value_leaves_the_others_as_they_are(client, digested):
    ids = [put_fact(client, number, valid_from=when)["id"] for number, when in enumerate((EARLY, MIDDLE, LATE))]
    client.delete(f"/v1/memories/{ids[1]}?hard=true")
    digested()
    assert spans(client) == [(0, EARLY, MIDDLE), (2, LATE, None)]
    assert client.get(f"/v1/memories/{ids[1]}").status_code == 404


def test_every_change_of_a_fact_is_in_the_change_log(client, container):
    first = put_fact(client, 1, valid_from=EARLY)["id"]
    second = put_fact(client, 2, valid_from=MIDDLE)["id"]
    client.delete(PORT)
    with container.databases.get("default").read() as db:
        told = db.execute("SELECT op, memory_id FROM change ORDER BY seq").fetchall()
    assert told == [
        (changes.CREATE, first),
        (changes.CREATE, second),
        (changes.CLOSE, first),
        (changes.CLOSE, second),
    ]


def test_batch_may_set_the_same_fact_repeatedly(client):
    fields = {"content": "x", "kind": "keyed_fact"}
    key = {"subject": "staging", "attribute": "port"}
    told = ((1, EARLY), (1, LATE), (2, MIDDLE))
    items = [{**fields, "occurred_at": when, "details": {**key, "value": said}} for said, when in told]
    results = client.post("/v1/memories/batch", {"items": items}).get_json()["results"]
    assert [one["outcome"] for one in results] == ["created", "merged", "created"]
    assert spans(client) == [(1, EARLY, MIDDLE), (2, MIDDLE, LATE), (1, LATE, None)]
