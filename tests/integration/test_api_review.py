"""The inbox over HTTP: pairs, candidates, the audit trail and the decisions of the door."""

import pytest
import tomlkit

from pipeline.kernel.records import Stage

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
# Most words are the same, so that hashed words find them near, and one more keeps them apart.
MORE = "The build runs nightly on the small server together."
DENIAL = "The build does not run nightly on the small server."
DOUBTFUL = "Deploys of the shop wait for the tests"
TOKEN = "ghp_" + "q9W8e7R6t5Y4u3I2o1P0a9S8d7F6g7H8j9K0"


@pytest.fixture
def reviewing(container, client):
    """A client of a workspace in which doubtful memories wait."""
    paths = container.settings.paths.workspace("default")
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    paths.config.write_text(tomlkit.dumps({"review": True}))
    return client


def items(client, path):
    return client.get(path).get_json()["items"]


def read(client, memory_id):
    return client.get(f"/v1/memories/{memory_id}").get_json()


def ids(client):
    return {item["id"] for item in items(client, "/v1/memories")}


def candidate(client):
    answer = client.post("/v1/memories", {"content": DOUBTFUL, "source": "ambient"})
    assert answer.get_json()["outcome"] == "candidate"
    return answer.get_json()["id"]


def test_a_double_is_merged_shown_and_undone(client, digested):
    older = client.write(ONE, tags=["old"], importance=0.4, source="import")
    newer = client.write(SAME, tags=["new"], importance=0.9)
    before = read(client, older), read(client, newer)
    digested()
    merged = read(client, older)
    assert ids(client) == {older}
    assert (merged["tags"], merged["importance"], merged["merge_count"]) == (["old", "new"], 0.9, 1)
    assert merged["trust"] == "trusted"
    assert [entry["content"] for entry in merged["history"]] == [SAME]
    [entry] = items(client, "/v1/audit")
    assert (entry["actor"], entry["action"], entry["memory_id"], entry["other_id"], entry["undone_at"]) == (
        "dedup",
        "merge",
        newer,
        older,
        None,
    )

    assert client.post(f"/v1/audit/{entry['id']}/undo").get_json()["id"] == newer
    changed = ("updated_at", "entities")
    for old in before:
        now = read(client, old["id"])
        assert {k: v for k, v in now.items() if k not in changed} == {k: v for k, v in old.items() if k not in changed}
    assert items(client, "/v1/audit")[0]["undone_at"] is not None
    assert set(client.find_ids(ONE)) == {older, newer}
    digested()
    assert ids(client) == {older, newer}
    assert client.post(f"/v1/audit/{entry['id']}/undo").status_code == 409


def test_the_trail_names_ids_only(client, digested):
    client.write(ONE, tags=["flumadiddle"])
    client.write(SAME)
    digested()
    text = client.get("/v1/audit").get_data(as_text=True)
    assert "nightly" not in text
    assert "flumadiddle" not in text


@pytest.mark.parametrize("purged", [0, 1])
def test_purged_memory_cannot_be_restored_by_undo(client, digested, purged):
    both = [client.write(ONE), client.write(SAME)]
    digested()
    [entry] = items(client, "/v1/audit")
    client.delete(f"/v1/memories/{both[purged]}?hard=true")
    assert client.post(f"/v1/audit/{entry['id']}/undo").status_code == 404
    assert [known["id"] for known in items(client, "/v1/audit")] == [entry["id"]]


def test_undo_of_an_unknown_change_is_not_found(client):
    client.write(ONE)
    assert client.post("/v1/audit/01ARZ3NDEKTSV4RRFFQ69G5FAV/undo").status_code == 404


def test_a_denial_is_shown_on_both_sides(client, digested):
    older, newer = client.write(ONE), client.write(DENIAL)
    digested()
    assert ids(client) == {older, newer}
    hits = {hit["id"]: hit for hit in client.recall(ONE)["results"]}
    assert hits[older]["contradicted_by"] == [newer]
    assert hits[newer]["contradicted_by"] == [older]
    for one, other, outgoing in ((older, newer, False), (newer, older, True)):
        edges = [edge for edge in read(client, one)["edges"] if edge["kind"] == "contradicts"]
        assert [(edge["id"], edge["direction"]) for edge in edges] == [(other, "out" if outgoing else "in")]


def test_a_doubt_waits_with_its_reasons(client, digested):
    older, newer = client.write(ONE), client.write(MORE)
    digested()
    [pair] = items(client, "/v1/duplicates")
    assert (pair["older"]["id"], pair["newer"]["id"]) == (older, newer)
    assert pair["reasons"]
    assert 0.8 <= pair["cosine"] <= 1


def test_a_pair_is_merged_by_a_person_and_undone(client, digested):
    older, newer = client.write(ONE), client.write(MORE)
    digested()
    [pair] = items(client, "/v1/duplicates")
    assert client.post(f"/v1/duplicates/{pair['id']}", {"action": "merge"}).get_json()["id"] == newer
    assert (ids(client), items(client, "/v1/duplicates")) == ({newer}, [])
    assert client.post(f"/v1/duplicates/{pair['id']}", {"action": "keep"}).status_code == 409
    [entry] = items(client, "/v1/audit")
    assert entry["actor"] == "review"
    client.post(f"/v1/audit/{entry['id']}/undo")
    digested()
    assert (ids(client), items(client, "/v1/duplicates")) == ({older, newer}, [])


def test_a_pair_is_kept(client, digested):
    both = {client.write(ONE), client.write(MORE)}
    digested()
    [pair] = items(client, "/v1/duplicates")
    client.post(f"/v1/duplicates/{pair['id']}", {"action": "keep"})
    digested()
    assert (ids(client), items(client, "/v1/duplicates"), items(client, "/v1/audit")) == (both, [], [])
    assert client.post(f"/v1/duplicates/{pair['id']}", {"action": "merge"}).status_code == 409


@pytest.mark.parametrize("body", [{"action": "burn"}, {}, {"action": "keep", "why": "because"}])
def test_a_verdict_is_one_of_two(client, digested, body):
    client.write(ONE)
    client.write(MORE)
    digested()
    [pair] = items(client, "/v1/duplicates")
    assert client.post(f"/v1/duplicates/{pair['id']}", body).status_code == 422
    assert client.post("/v1/duplicates/01ARZ3NDEKTSV4RRFFQ69G5FAV", {"action": "keep"}).status_code == 404


def test_pairs_come_in_pages(client, digested):
    for scope in ("a", "b", "c"):
        for text in (ONE, MORE):
            client.write(text, scope={"kind": "agent", "id": scope})
    digested()
    found = []
    for scope in ("a", "b", "c"):
        found += items(client, f"/v1/duplicates?agent={scope}")
    assert len({pair["id"] for pair in found}) == 3
    assert items(client, "/v1/duplicates") == []


def test_candidate_is_hidden_until_accepted_and_then_found(reviewing, container, digested):
    memory_id = candidate(reviewing)
    assert [item["id"] for item in items(reviewing, "/v1/candidates")] == [memory_id]
    digested()
    assert reviewing.find_ids(DOUBTFUL) == []
    assert ids(reviewing) == set()
    answer = reviewing.post(f"/v1/candidates/{memory_id}", {"action": "accept"}).get_json()
    assert not answer["candidate"]
    assert items(reviewing, "/v1/candidates") == []
    # Before any worker heard of it.
    assert reviewing.find_ids("shop deploys") == [memory_id]
    assert ("default", Stage.DEDUP) in container.notify.sent
    assert reviewing.post(f"/v1/candidates/{memory_id}", {"action": "reject"}).status_code == 409


def test_accepted_candidate_is_merged_into_the_memory_it_repeats(reviewing, digested):
    older = reviewing.write(DOUBTFUL.lower())
    memory_id = candidate(reviewing)
    reviewing.post(f"/v1/candidates/{memory_id}", {"action": "accept"})
    digested()
    assert ids(reviewing) == {older}


def test_rejected_candidate_is_archived(reviewing):
    memory_id = candidate(reviewing)
    reviewing.post(f"/v1/candidates/{memory_id}", {"action": "reject"})
    assert (items(reviewing, "/v1/candidates"), ids(reviewing)) == ([], set())
    assert read(reviewing, memory_id)["archived_at"] is not None
    assert reviewing.post(f"/v1/candidates/{memory_id}", {"action": "accept"}).status_code == 409
    assert reviewing.post("/v1/candidates/nobody", {"action": "accept"}).status_code == 404


@pytest.mark.parametrize(("verdict", "value"), [("accept", 6543), ("reject", 5433)])
def test_fact_from_an_untrusted_source_waits_for_review(reviewing, verdict, value):
    reviewing.put("/v1/facts/staging/port", {"value": 5433})
    answer = reviewing.put("/v1/facts/staging/port", {"value": 6543, "source": "ambient"}).get_json()
    assert answer["outcome"] == "candidate"
    assert reviewing.get("/v1/facts/staging/port").get_json()["value"] == 5433
    reviewing.post(f"/v1/candidates/{answer['id']}", {"action": verdict})
    assert reviewing.get("/v1/facts/staging/port").get_json()["value"] == value


def test_without_review_doubtful_captures_are_rejected(client):
    answer = client.post("/v1/memories", {"content": DOUBTFUL, "source": "ambient"}).get_json()
    assert answer["outcome"] == "rejected"
    assert answer["reason"]
    assert (items(client, "/v1/candidates"), ids(client)) == ([], set())


def test_every_admission_decision_is_listed_without_the_memory_text(reviewing, container):
    texts = {
        "created": ("The flumadiddle listens on port 5433 behind the proxy.", "user"),
        "merged": ("The flumadiddle listens on port 5433 behind the proxy.", "user"),
        "candidate": (DOUBTFUL, "ambient"),
        "rejected": ("ok qwyjibo", "ambient"),
    }
    for outcome, (content, source) in texts.items():
        assert reviewing.post("/v1/memories", {"content": content, "source": source}).get_json()["outcome"] == outcome
    secret = reviewing.post("/v1/memories", {"content": f"my token {TOKEN}", "source": "ambient"}).get_json()
    assert secret["outcome"] == "rejected"
    listed = items(reviewing, "/v1/admissions")
    assert [item["outcome"] for item in listed] == ["rejected", *reversed(texts)]
    for outcome in texts:
        found = items(reviewing, f"/v1/admissions?outcome={outcome}")
        assert {item["outcome"] for item in found} == {outcome}
    told = reviewing.get("/v1/admissions").get_data(as_text=True)
    assert not any(word in told for word in ("flumadiddle", "qwyjibo", "Deploys", TOKEN))
    assert all(item["reasons"] for item in listed if item["outcome"] == "rejected")
    assert traces(container, TOKEN, "qwyjibo", "my token") == []


def traces(container, *words):
    """List (file, word) for every file of the home that holds a word."""
    return [
        (file.name, word)
        for file in sorted(container.settings.home.rglob("*"))
        if file.is_file()
        for word in words
        if word.lower().encode() in file.read_bytes().lower()
    ]


def test_conflicts_are_listed_by_precedence_and_settled(client):
    older = client.write("Install packages with npm", occurred_at="2026-01-01T00:00:00Z")
    edge = {"kind": "contradicts", "to": older}
    newer = client.write("Install packages with pnpm", occurred_at="2026-02-01T00:00:00Z", edges=[edge])
    (conflict,) = client.get("/v1/conflicts").get_json()["items"]
    assert (conflict["leading"]["memory"]["id"], conflict["other"]["memory"]["id"]) == (newer, older)
    assert (conflict["leading"]["standing"], conflict["leading"]["origin"]) == ("stated by the user", "user")
    settled = client.post(f"/v1/conflicts/{newer}/{older}", {"action": "keep"}).get_json()
    assert settled["archived"] == older
    assert client.get("/v1/conflicts").get_json()["items"] == []
    assert client.post(f"/v1/conflicts/{newer}/{older}", {"action": "keep"}).status_code == 409
    client.post(f"/v1/audit/{settled['audit_id']}/undo", {})
    kept = client.post(f"/v1/conflicts/{older}/{newer}", {"action": "both"}).get_json()
    assert kept == {"archived": None, "audit_id": None}
    assert client.post(f"/v1/conflicts/{older}/{newer}", {"action": "both"}).status_code == 404
