"""People of one home: tokens, roles, what each writes and sees, and what is shared and withdrawn."""

import json
from datetime import timedelta

import pytest

from config.declared import Secret
from pipeline.features.people import usecases as people
from pipeline.features.sync.merge import merge
from pipeline.features.sync.usecases import USUAL_SCOPES
from pipeline.kernel.records import EdgeKind
from pipeline.kernel.store import edges, memories, meta, oplog
from pipeline.kernel.store.log_start import start_log
from pipeline.kernel.times import utc_now
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, flush_notes, open_web
from tests.fakes.people import PersonClient, add_person
from web.http.app import create_app

TEAM = "team"


@pytest.fixture
def container(tmp_path, served_at):
    container = open_web(fast_settings(tmp_path / "home", store=Secret(served_at)))
    yield container
    container.close()


@pytest.fixture
def home(app, container):
    return CheckedClient(app, container.token)


@pytest.fixture
def join(app, container):
    """Return somebody's client; a role is one in the team's workspace, which has a memory."""
    CheckedClient(app, container.token).write("The team meets at noon", workspace=TEAM)

    def join(name: str, role: str | None = None, *, admin: bool = False) -> PersonClient:
        token = add_person(container, name, admin=admin, **({} if role is None else {TEAM: role}))
        return PersonClient(app, container, token, TEAM)

    return join


@pytest.fixture
def ada(join):
    return join("Ada", "writer")


@pytest.fixture
def bob(join):
    return join("Bob", "writer")


def test_single_person_installation_has_no_people_file(home, container):
    home.write("The port is 8123")
    assert home.find_ids("port")
    assert not container.settings.paths.home.exists()
    assert home.get("/v1/people").get_json()["items"] == []
    assert not container.settings.paths.home.exists()


def test_requests_with_the_installation_token_do_not_open_the_people_file(home, container, ada, monkeypatch):
    def refuse(*_given):
        raise AssertionError("the file of people was opened")

    for asked in ("read", "write"):
        monkeypatch.setattr(container.people._tables, asked, refuse)
    home.write("The port is 8123", workspace=TEAM)
    assert home.find_ids("port", workspace=TEAM)


def test_a_token_is_hashed_at_rest_and_opens_at_once(container, app):
    token = add_person(container, "Ada", team="reader")
    with container.people._tables.read() as db:
        rows = db.execute("SELECT * FROM token").fetchall()
    assert len(rows) == 1
    assert token not in repr(rows)
    assert PersonClient(app, container, token, TEAM).get("/v1/people/me").get_json() == {
        "id": "ada",
        "name": "Ada",
        "admin": False,
        "grants": {"team": "reader"},
    }


def test_every_process_refuses_a_revoked_token(container, app, ada):
    other = open_web(container.settings)
    elsewhere = PersonClient(create_app(other), other, ada.auth["Authorization"].removeprefix("Bearer "), TEAM)
    assert elsewhere.get("/v1/people/me").status_code == ada.get("/v1/people/me").status_code == 200
    people.revoke(container.people, people.get_person(container.people, "ada"))
    assert elsewhere.get("/v1/people/me").status_code == ada.get("/v1/people/me").status_code == 401
    other.close()


def test_a_stream_ends_when_its_token_is_revoked(app, container, ada):
    headers = {name: value for name, value in ada.auth.items() if name != "X-Reverie-Workspace"}
    stream = app.test_client().get("/w/team/timeline/events?after=0", headers=headers, buffered=False)
    parts = iter(stream.response)
    assert b"retry" in next(parts)
    assert b"changes" in next(parts)
    people.revoke(container.people, people.get_person(container.people, "ada"))
    assert list(parts) == []
    stream.close()


def test_expired_and_unknown_tokens_are_refused(container, app):
    expired = add_person(container, "Ada", lifetime=timedelta(seconds=-1), team="owner")
    for token in (expired, "rvp_" + "x" * 43, "rvp_", ""):
        assert PersonClient(app, container, token, TEAM).get("/v1/people/me").status_code == 401


def test_a_workspace_without_a_role_looks_nonexistent(home, ada):
    home.write("The port is 8123", workspace="secret")
    refused = ada.get("/v1/memories", workspace="secret")
    assert refused.status_code == 404
    unnamed = {"instance": "of this request"}
    assert refused.get_json() | unnamed == ada.get("/v1/memories", workspace="nothing").get_json() | unnamed
    assert [one["id"] for one in ada.get("/v1/workspaces").get_json()["items"]] == [TEAM]


def test_a_reader_reads_a_writer_writes_an_owner_purges(join, ada):
    reader, owner = join("Rita", "reader"), join("Olga", "owner")
    written = ada.write("The port of billing is 8123")
    assert reader.words("port of billing") == ["The port of billing is 8123"]
    assert reader.post("/v1/memories", {"content": "x y z"}).status_code == 403
    assert reader.delete(f"/v1/memories/{written}").status_code == 403
    assert ada.delete(f"/v1/memories/{written}?hard=true").status_code == 403
    assert ada.post("/v1/jobs/decay").status_code == 403
    assert owner.delete(f"/v1/memories/{written}?hard=true").status_code == 200


def test_memory_and_history_name_their_authors(home, ada, bob):
    own = ada.write("The port of billing is 8123")
    others = home.write("The port of ledger is 9000", workspace=TEAM)
    assert bob.get(f"/v1/memories/{own}").get_json()["author"] == "ada"
    assert "author" not in bob.get(f"/v1/memories/{others}").get_json()
    assert {hit["content"]: hit.get("author") for hit in bob.recall("port")["results"]} == {
        "The port of billing is 8123": "ada",
        "The port of ledger is 9000": None,
    }
    bob.patch(f"/v1/memories/{own}", {"content": "The port of billing is 8124"})
    record = ada.get(f"/v1/memories/{own}").get_json()
    assert (record["author"], [entry["author"] for entry in record["history"]]) == ("ada", ["bob"])


def test_author_of_a_memory_is_part_of_sync(container, ada):
    ada.write("The port of billing is 8123")
    *_, operation = container.sync.list_changes(TEAM, 0, 10)
    assert operation["fields"]["author"] == "ada"


@pytest.mark.parametrize(
    "scope", [{"kind": "user"}, {"kind": "agent", "id": "claude"}, {"kind": "session", "id": "s1"}]
)
@pytest.mark.parametrize("kind", ["fact", "goal"])
def test_scoped_memory_is_visible_only_to_its_person(home, join, ada, bob, scope, kind):
    admin = join("Anna", "owner", admin=True)
    viewer = {} if scope["kind"] == "user" else {scope["kind"]: scope["id"]}
    own = ada.write("Ada's port of billing is 8123", scope=scope, kind=kind)
    assert ada.words("port of billing", viewer=viewer) == ["Ada's port of billing is 8123"]
    assert ada.get(f"/v1/memories/{own}").get_json()["scope"]["kind"] == scope["kind"]
    for other in (bob, admin, home):
        assert other.find_ids("port of billing", viewer=viewer, workspace=TEAM) == []
        assert other.get(f"/v1/memories/{own}", workspace=TEAM).status_code == 404
        assert other.get(f"/v1/memories/{own[-8:]}", workspace=TEAM).status_code == 404
        assert other.delete(f"/v1/memories/{own}", workspace=TEAM).status_code in (403, 404)


def test_the_same_text_of_two_people_is_two_memories(ada, bob):
    scope = {"kind": "agent", "id": "claude"}
    assert ada.write("The port is 8123", scope=scope) != bob.write("The port is 8123", scope=scope)
    own, theirs = (one.write("The port is 8123", scope={"kind": "user"}) for one in (ada, bob))
    assert own != theirs


def test_token_determines_the_person(ada, bob):
    ada.write("Ada's port is 8123", scope={"kind": "user", "id": "ada"})
    for body in ({"viewer": {"user": "ada"}}, {"scope": {"kind": "user", "id": "ada"}}):
        assert bob.post("/v1/recall", {"query": "port", **body}).status_code == 403
    assert bob.post("/v1/memories", {"content": "x y", "scope": {"kind": "user", "id": "ada"}}).status_code == 403
    assert bob.get("/v1/memories?scope=user:ada").status_code == 403
    assert bob.get("/v1/goals?user=ada").status_code == 403
    forged = {"query": "port", "viewer": {"agent": "ada␟"}}
    assert bob.post("/v1/recall", forged).status_code == 422


def test_personal_store_is_accessible_only_to_its_person(home, join, ada, bob):
    admin = join("Anna", admin=True)
    ada.write("Ada likes tea", scope={"kind": "user"})
    assert ada.get("/v1/memories", workspace="me.ada").status_code == 200
    for other in (bob, admin, home):
        assert other.get("/v1/memories", workspace="me.ada").status_code == 404
    home.write("The owner likes coffee", scope={"kind": "user"}, workspace=TEAM)
    assert [hit["content"] for hit in home.recall("likes", workspace=TEAM)["results"]] == ["The owner likes coffee"]
    assert ada.get("/v1/memories", workspace="me").status_code == 404
    assert ada.words("likes") == ["Ada likes tea"]


def test_the_name_of_a_removed_person_is_not_reused(container, app, ada):
    ada.write("Ada likes tea", scope={"kind": "user"})
    people.remove_person(container.people, people.get_person(container.people, "ada"))
    assert ada.get("/v1/people/me").status_code == 401
    again = PersonClient(app, container, add_person(container, "Ada", team="writer"), TEAM)
    assert again.get("/v1/people/me").get_json()["id"] == "ada-2"
    assert again.find_ids("tea") == []


def test_no_folder_of_the_server_is_looked_at_for_a_person(container, ada, tmp_path, monkeypatch):
    monkeypatch.setattr("web.http.call.choose_workspace", None)
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": "We use port 8123."}}))
    stop = {"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(transcript)}
    assert ada.post("/hooks/claude-code", stop).status_code == 200
    assert all(session["turns"] == 0 for session in ada.get("/v1/sessions").get_json()["items"])
    prepared = ada.post("/v1/prepare", {"message": "Which port?", "cwd": str(tmp_path)}).get_json()
    assert prepared["project"] == {"workspace": TEAM, "branch": None}
    (tmp_path / ".git").mkdir()
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(tmp_path), "prompt": "Which port?"}
    assert ada.post("/hooks/claude-code", prompt).status_code == 200
    flush_notes(container)
    with container.databases.get(TEAM).read() as db:
        assert meta.get(db, meta.CHECKOUT) is None


def test_hook_runs_are_visible_only_to_their_person(ada, bob, tmp_path):
    ada.write("Use port 8123 for billing", kind="lesson", scope={"kind": "session", "id": "s1"})
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s1",
        "cwd": str(tmp_path),
        "prompt": "Which port for billing?",
    }
    assert "8123" in ada.post("/hooks/claude-code", event).get_data(as_text=True)
    assert bob.post("/hooks/claude-code", event).get_data(as_text=True) == ""
    told = [run["session_id"] for run in ada.get("/v1/hook-runs").get_json()["items"]]
    assert told == ["s1"]
    runs = ada.get("/v1/hook-runs").get_json()["items"]
    assert bob.get(f"/v1/hook-runs/{runs[0]['id']}").status_code == 404


def test_sessions_and_turns_are_separate_per_person(home, ada, bob):
    for one in (ada, bob):
        one.post("/v1/turns", {"session_id": "s1", "messages": [{"role": "user", "content": "We use port 8123 here."}]})
    for one in (ada, bob):
        assert [session["id"] for session in one.get("/v1/sessions").get_json()["items"]] == ["s1"]
        assert len(one.get("/v1/sessions/s1").get_json()["said"]) == 1
    assert home.get("/v1/sessions", workspace=TEAM).get_json()["items"] == []
    assert home.get("/v1/sessions/ada␟s1", workspace=TEAM).status_code == 400


# Sharing


@pytest.mark.parametrize(
    "scope", [{"kind": "user"}, {"kind": "agent", "id": "claude"}, {"kind": "session", "id": "s1"}]
)
def test_shared_memory_is_visible_to_members_until_it_is_withdrawn(ada, bob, scope):
    own = ada.write("The port of billing is 8123", scope=scope)
    shared = ada.post(f"/v1/memories/{own}/share").get_json()
    assert (shared["id"], shared["shared"], shared["author"]) == (own, True, "ada")
    assert bob.find_ids("port of billing") == [own]
    assert bob.get(f"/v1/memories/{own}").get_json()["author"] == "ada"
    assert ada.find_ids("port of billing") == [own]
    assert bob.delete(f"/v1/memories/{own}/share").status_code == 403
    assert ada.delete(f"/v1/memories/{own}/share").status_code == 200
    assert bob.find_ids("port of billing") == []
    assert bob.get(f"/v1/memories/{own}").status_code == 404
    viewer = {} if scope["kind"] == "user" else {scope["kind"]: scope["id"]}
    assert ada.find_ids("port of billing", viewer=viewer) == [own]
    again = ada.post(f"/v1/memories/{own}/share")
    assert again.status_code == 200
    assert bob.find_ids("port of billing") == [own]


def test_owner_can_withdraw_a_share_and_only_the_author_can_share(join, ada, bob):
    owner = join("Olga", "owner")
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    assert bob.post(f"/v1/memories/{own}/share").status_code == 404
    assert owner.post(f"/v1/memories/{own}/share").status_code == 404
    ada.post(f"/v1/memories/{own}/share")
    assert ada.post(f"/v1/memories/{own}/share").status_code == 409
    assert owner.delete(f"/v1/memories/{own}/share").status_code == 200
    assert owner.get(f"/v1/memories/{own}").status_code == 404
    assert ada.delete(f"/v1/memories/{own}/share").status_code == 409


def test_versions_before_a_share_stay_private(ada, bob):
    own = ada.write("The port of billing is 8123, says Eve", scope={"kind": "agent", "id": "claude"})
    ada.patch(f"/v1/memories/{own}", {"content": "The port of billing is 8123"})
    ada.post(f"/v1/memories/{own}/share")
    assert "Eve" not in bob.get(f"/v1/memories/{own}").get_data(as_text=True)
    assert "Eve" in ada.get(f"/v1/memories/{own}").get_data(as_text=True)


def test_a_share_is_logged_for_other_machines_and_can_be_undone(container, join, ada, bob):
    owner = join("Olga", "owner")
    start_log(container.databases.get(TEAM))
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    ada.post(f"/v1/memories/{own}/share")
    shared = [one["fields"] for one in container.sync.list_changes(TEAM, 0, 50) if one["kind"] == "memory"][-1]
    assert (shared["scope_kind"], shared["scope_id"], shared["shared_from"]) == (None, None, "agent:ada␟claude")
    # Nothing of it had travelled before.
    assert shared["content"] == "The port of billing is 8123"
    (act,) = owner.get("/v1/audit").get_json()["items"]
    assert (act["action"], act["actor"], act["memory_id"]) == ("share", "ada", own)
    assert owner.post(f"/v1/audit/{act['id']}/undo").status_code == 200
    assert bob.find_ids("port of billing") == []


def test_sharing_text_that_a_member_already_wrote_is_a_conflict(ada, bob):
    own = ada.write("The port of billing is 8123", scope={"kind": "user"})
    theirs = bob.write("The port of billing is 8123")
    assert ada.post(f"/v1/memories/{own}/share").status_code == 409
    assert bob.find_ids("port of billing") == [theirs]


def test_share_can_be_withdrawn_after_its_author_wrote_the_text_again(ada, bob):
    scope = {"kind": "agent", "id": "claude"}
    own = ada.write("The port of billing is 8123", scope=scope)
    ada.post(f"/v1/memories/{own}/share")
    again = ada.write("The port of billing is 8123", scope=scope)
    assert again != own
    assert ada.delete(f"/v1/memories/{own}/share").status_code == 200
    assert bob.find_ids("port of billing") == []
    assert ada.find_ids("port of billing", viewer={"agent": "claude"}) == [again]


def test_memory_deleted_by_its_owner_can_be_written_by_another_person(ada, bob):
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    ada.delete(f"/v1/memories/{own}")
    written = bob.post("/v1/memories", {"content": "The port of billing is 8123", "source": "agent"}).get_json()
    assert written["outcome"] == "created"


# Managing people


def test_an_admin_manages_people_over_http(app, container, join, ada):
    admin = join("Anna", admin=True)
    made = admin.post("/v1/people", {"name": "Zoë", "role": "reader", "workspace": TEAM, "expires_days": 1}).get_json()
    zoe = PersonClient(app, container, made["token"], TEAM)
    assert zoe.get("/v1/people/me").get_json()["grants"] == {TEAM: "reader"}
    assert zoe.get("/v1/people").status_code == ada.get("/v1/people").status_code == 403
    assert ada.post("/v1/people", {"name": "Eve", "admin": True}).status_code == 403
    admin.put("/v1/people/zoe/grants/team", {"role": "writer"})
    assert zoe.post("/v1/memories", {"content": "The port is 8123"}).status_code == 201
    admin.delete("/v1/people/zoe/grants/team")
    assert zoe.get("/v1/memories").status_code == 404
    assert admin.put("/v1/people/zoe/grants/me.ada", {"role": "reader"}).status_code == 422
    assert admin.delete(f"/v1/people/zoe/tokens/{made['token_id']}").status_code == 200
    assert zoe.get("/v1/people/me").status_code == 401
    listed = admin.get("/v1/people")
    assert made["token"] not in listed.get_data(as_text=True)
    assert {one["id"]: one["admin"] for one in listed.get_json()["items"]} == {"ada": False, "anna": True, "zoe": False}
    assert admin.delete("/v1/people/zoe").status_code == 200
    assert admin.delete("/v1/people/zoe").status_code == 404


def test_devices_receive_shares_and_withdrawals(container, app, ada, tmp_path):
    other = open_web(fast_settings(tmp_path / "other"))
    taken = 0

    def send() -> list[str]:
        nonlocal taken
        (tmp_path / "between").mkdir(exist_ok=True)
        with container.databases.get(TEAM).read() as db:
            found = oplog.after(db, taken, 1000, USUAL_SCOPES)
        taken = max([taken, *(number for number, _ in found)])
        merge(other.workspace(TEAM).create(), [operation for _, operation in found])
        return CheckedClient(create_app(other), other.token).find_ids("port of billing", workspace=TEAM)

    own = ada.write("The port of billing is 8123", scope={"kind": "user"}, kind="goal")
    assert send() == []
    assert not container.sync.list_changes(TEAM, 1, 100)
    ada.post(f"/v1/memories/{own}/share")
    assert send() == [own]
    ada.delete(f"/v1/memories/{own}/share")
    assert send() == []
    other.close()


def test_withdrawal_removes_memories_derived_from_the_shared_memory(container, ada, bob):
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    ada.post(f"/v1/memories/{own}/share")
    made = bob.write("In short: billing listens on port 8123", edges=[{"kind": "derived_from", "to": own}])
    kept = bob.write("Bob concludes that billing listens somewhere", edges=[{"kind": "derived_from", "to": own}])
    with container.databases.get(TEAM).write() as db:
        # As the job does that sums up.
        seqs = {one: memories.get(db, one).seq for one in (made, own)}
        edges.remove(db, seqs[made], EdgeKind.DERIVED_FROM, seqs[own])
        edges.add(db, seqs[made], EdgeKind.DERIVED_FROM, seqs[own], "consolidate", utc_now())
    ada.delete(f"/v1/memories/{own}/share")
    assert bob.get(f"/v1/memories/{made}").status_code == 404
    record = bob.get(f"/v1/memories/{kept}")
    assert record.status_code == 200
    assert own not in record.get_data(as_text=True)


def test_withdrawal_removes_the_shared_text_from_hook_runs(ada, bob):
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    ada.post(f"/v1/memories/{own}/share")
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Which port has billing?"}
    assert "8123" in bob.post("/hooks/claude-code", prompt).get_data(as_text=True)
    assert [run["memory_ids"] for run in bob.get("/v1/hook-runs").get_json()["items"]] == [[own]]
    ada.delete(f"/v1/memories/{own}/share")
    (run,) = bob.get("/v1/hook-runs").get_json()["items"]
    assert "8123" not in bob.get(f"/v1/hook-runs/{run['id']}").get_data(as_text=True)
    assert "8123" not in bob.post("/hooks/claude-code", {**prompt, "session_id": "t"}).get_data(as_text=True)


def test_the_page_of_a_memory_shares_and_withdraws_it(ada, bob):
    own = ada.write("The port of billing is 8123", scope={"kind": "agent", "id": "claude"})
    page = f"/w/team/memories/{own}"
    offered = ada.browser().get(page, headers=ada.auth).get_data(as_text=True)
    assert f"{page}/share" in offered
    assert "agent claude" in offered
    assert bob.browser().get(page, headers=bob.auth).status_code == 404
    assert bob.browser().post(f"{page}/share", headers=bob.auth).status_code == 404
    assert ada.browser().post(f"{page}/share", headers=ada.auth).status_code == 303
    shown = bob.browser().get(page, headers=bob.auth).get_data(as_text=True)
    assert "<dt>Author</dt><dd>ada</dd>" in shown
    assert f"{page}/withdraw" not in shown
    assert bob.browser().post(f"{page}/withdraw", headers=bob.auth).status_code == 403
    assert ada.browser().post(f"{page}/withdraw", headers=ada.auth).status_code == 303
    assert bob.browser().get(page, headers=bob.auth).status_code == 404
