"""Who may call which route: every registered one, by everybody, and none that nobody decided about."""

import pytest
from werkzeug.exceptions import HTTPException

from pipeline.features.people import usecases as people
from pipeline.kernel.errors import NO_WORKSPACE, StoreUnavailable
from tests.fakes.client import HOST
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.people import add_person
from web.http.app import create_app

TEAM = "team"
# In this order: who may call a route may call what those before it may.
CALLERS = ("stranger", "reader", "writer", "owner", "admin", "home")

READER = """
GET /v1/memories · GET /v1/memories/<memory_id> · POST /v1/recall · POST /v1/recall/why · POST /v1/prepare
GET /v1/facts · GET /v1/facts/<subject>/<attribute> · GET /v1/facts/<subject>/<attribute>/history
GET /v1/goals · GET /v1/goals/<goal_id> · GET /v1/lessons · GET /v1/lessons/report
GET /v1/entities · GET /v1/entities/<entity_id> · GET /v1/graph · GET /v1/arcs
GET /v1/duplicates · GET /v1/candidates · GET /v1/admissions · GET /v1/unsaved-statements
GET /v1/sources · GET /v1/sources/<source>/items
GET /v1/incognito · POST /v1/incognito · GET /v1/journal · GET /v1/history
GET /v1/sessions · GET /v1/sessions/search · GET /v1/sessions/questions · GET /v1/sessions/<session_id>
GET /v1/stats · GET /v1/events · GET /v1/queue · GET /v1/jobs · GET /v1/switches
POST /hooks/claude-code · POST /hooks/codex · POST /hooks/gemini · POST /hooks/qwen-code · POST /hooks/copilot
POST /hooks/cursor · POST /hooks/antigravity · POST /hooks/opencode · POST /hooks/kilo · POST /hooks/pi
POST /hooks/cline
POST /v1/hook-runs · POST /mcp · GET /mcp
GET /w/<workspace>/ · GET /w/<workspace>/timeline · GET /w/<workspace>/timeline/rows
GET /w/<workspace>/timeline/events · GET /w/<workspace>/arcs · GET /w/<workspace>/arcs/<arc_id>
GET /w/<workspace>/memories/<memory_id> · GET /w/<workspace>/memories/<memory_id>/edit
GET /w/<workspace>/recall · GET /w/<workspace>/entities · GET /w/<workspace>/entities/<entity_id>
GET /w/<workspace>/facts · GET /w/<workspace>/facts/of · GET /w/<workspace>/facts/one
GET /w/<workspace>/goals · GET /w/<workspace>/goals/<goal_id>
GET /w/<workspace>/lessons · GET /w/<workspace>/lessons/report · GET /w/<workspace>/lessons/<lesson_id>
GET /w/<workspace>/sessions · GET /w/<workspace>/sessions/<path:session_id>
GET /w/<workspace>/hooks · GET /w/<workspace>/hooks/<run_id>
GET /w/<workspace>/me · POST /w/<workspace>/me · POST /w/<workspace>/me/<memory_id>
POST /w/<workspace>/me/<memory_id>/purge
"""
WRITER = """
POST /v1/memories · POST /v1/memories/batch · PATCH /v1/memories/<memory_id> · DELETE /v1/memories/<memory_id>
POST /v1/memories/<memory_id>/restore · POST /v1/memories/<memory_id>/move
POST /v1/memories/<memory_id>/share · DELETE /v1/memories/<memory_id>/share
POST /v1/memories/<memory_id>/edges · DELETE /v1/memories/<memory_id>/edges
PUT /v1/facts/<subject>/<attribute> · DELETE /v1/facts/<subject>/<attribute>
POST /v1/goals · PATCH /v1/goals/<goal_id>
POST /v1/lessons/surfaces/<surface_id>
PUT /v1/sources/<source>/items · POST /v1/sources/<source>/forget
POST /v1/turns · PATCH /v1/sessions/<session_id> · POST /v1/sessions/<session_id>/distill
POST /w/<workspace>/memories/<memory_id>/edit · POST /w/<workspace>/memories/<memory_id>/bring-back
POST /w/<workspace>/memories/<memory_id>/pin · POST /w/<workspace>/memories/<memory_id>/confirm
POST /w/<workspace>/memories/<memory_id>/unconfirm · POST /w/<workspace>/memories/<memory_id>/archive
POST /w/<workspace>/memories/<memory_id>/restore
POST /w/<workspace>/memories/<memory_id>/share · POST /w/<workspace>/memories/<memory_id>/withdraw
POST /w/<workspace>/facts/value · POST /w/<workspace>/facts/end · POST /w/<workspace>/facts/take-back
POST /w/<workspace>/facts/reopen · POST /w/<workspace>/goals · POST /w/<workspace>/goals/<goal_id>
POST /w/<workspace>/goals/<goal_id>/archive · POST /w/<workspace>/goals/<goal_id>/status
POST /w/<workspace>/lessons/surfaces/<surface_id> · POST /w/<workspace>/lessons/<lesson_id>/archive
POST /w/<workspace>/lessons/<lesson_id>/restore · POST /w/<workspace>/sessions/rename/<path:session_id>
"""
OWNER = """
POST /v1/entities/<entity_id>/merge · POST /v1/entities/<entity_id>/split
GET /v1/conflicts · POST /v1/conflicts/<kept_id>/<other_id>
POST /v1/duplicates/<pair_id> · POST /v1/candidates/<memory_id> · GET /v1/audit · POST /v1/audit/<entry_id>/undo
GET /v1/refused · POST /v1/refused/<refused_id>/accept
POST /v1/queue/retry · POST /v1/rebuild · POST /v1/jobs/<name>
GET /w/<workspace>/inbox · POST /w/<workspace>/inbox/candidates/<memory_id>
POST /w/<workspace>/inbox/candidates/<memory_id>/undo · POST /w/<workspace>/inbox/pairs/<pair_id>
POST /w/<workspace>/inbox/pairs/<pair_id>/undo · POST /w/<workspace>/inbox/contradictions/<denying_id>/<denied_id>
POST /w/<workspace>/inbox/contradictions/<denying_id>/<denied_id>/undo
POST /w/<workspace>/inbox/rules/<memory_id> · POST /w/<workspace>/inbox/rules/<memory_id>/undo
POST /w/<workspace>/inbox/acts/<entry_id>/undo · POST /w/<workspace>/inbox/refused/<memory_id>
GET /w/<workspace>/memories/<memory_id>/purge · POST /w/<workspace>/memories/<memory_id>/purge
GET /w/<workspace>/access
GET /w/<workspace>/settings · POST /w/<workspace>/settings/value · POST /w/<workspace>/settings/sessions/silence
POST /w/<workspace>/settings/sessions/unsilence
"""
ADMIN = """
GET /v1/people · POST /v1/people · POST /v1/people/<person_id>/tokens
DELETE /v1/people/<person_id>/tokens · DELETE /v1/people/<person_id>/tokens/<token_id>
DELETE /v1/people/<person_id>
PUT /v1/people/<person_id>/grants/<workspace> · DELETE /v1/people/<person_id>/grants/<workspace>
GET /v1/errors · GET /metrics · GET /v1/access-log · GET /v1/sessions/import
GET /w/<workspace>/workers · GET /w/<workspace>/workers/now · POST /w/<workspace>/workers/retry
POST /w/<workspace>/workers/jobs/<name>
"""
HOME = """
POST /v1/workspaces/move
GET /v1/changes · POST /v1/changes · POST /v1/devices
GET /w/<workspace>/map · GET /w/<workspace>/map/data · GET /w/<workspace>/map/around/<entity_id>
GET /w/<workspace>/map/communities/<number> · POST /w/<workspace>/map/draw
GET /w/<workspace>/claims · POST /w/<workspace>/claims/agree · POST /w/<workspace>/claims/withdraw
GET /w/<workspace>/sync · POST /w/<workspace>/sync/restore
GET /w/<workspace>/settings/token · POST /w/<workspace>/settings/token/new
"""
# About no workspace, or about what is the caller's own.
ANYBODY = """
GET /v1/workspaces · GET /v1/people/me · GET /v1/hook-runs · GET /v1/hook-runs/<run_id> · GET /v1/today
GET /openapi.json
POST /v1/dashboard/links · GET / · POST /sign-out · GET /w/<workspace> · GET /w/<workspace>/<path:rest>
"""
# Open without any token.
OPEN = "GET /healthz · GET /sign-in · GET /sign-in/provider · GET /sign-in/done · GET /assets/<path:filename>"

# What a route about a workspace needs of it, and what one about the home needs.
ROLES = {"reader": READER, "writer": WRITER, "owner": OWNER}
OF_HOME = {"admin": ADMIN, "home": HOME, "stranger": ANYBODY}
DECIDED = {
    route: least
    for least, routes in (ROLES | OF_HOME | {"anybody at all": OPEN}).items()
    for route in routes.replace("\n", " · ").split(" · ")
    if route
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    container = open_web(fast_settings(tmp_path_factory.mktemp("routes") / "home"))
    yield container, create_app(container)
    container.close()


@pytest.fixture(scope="module")
def tokens(server):
    container, app = server
    written = app.test_client().post(
        "/v1/memories",
        json={"content": "The team meets at noon"},
        headers={"Host": HOST, "Authorization": f"Bearer {container.token}", "X-Reverie-Workspace": TEAM},
    )
    assert written.status_code == 201
    found = {name: add_person(container, name, **{TEAM: name}) for name in ("reader", "writer", "owner")}
    found["stranger"] = add_person(container, "stranger", other="owner")
    found["admin"] = add_person(container, "admin", admin=True)
    found["home"] = container.token
    found["revoked"] = add_person(container, "revoked", **{TEAM: "owner"})
    people.revoke(container.people, people.get_person(container.people, "revoked"))
    found["unknown"] = "rvp_" + "x" * 43
    return found


def list_routes(app):
    for rule in app.url_map.iter_rules():
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            yield f"{method} {rule.rule}", method, rule


def call(app, token, method, rule):
    """Call a route with nothing that it could do anything with."""
    values = {name: TEAM if name == "workspace" else "none" for name in rule.arguments}
    if "name" in values:
        values["name"] = "none"
    path = rule.build(values)[1]
    headers = {"Host": HOST, "Authorization": f"Bearer {token}", "X-Reverie-Workspace": TEAM}
    try:
        return app.test_client().open(path, method=method, headers=headers, data=b"", buffered=False)
    except HTTPException as error:
        return error


def test_every_route_has_an_access_decision(server):
    _, app = server
    assert {route for route, _, _ in list_routes(app)} == set(DECIDED)


@pytest.mark.parametrize("caller", [*CALLERS, "revoked", "unknown"])
def test_every_route_is_open_only_to_its_roles(server, tokens, caller):
    _, app = server
    wrong = []
    for route, method, rule in list_routes(app):
        least = DECIDED[route]
        # What these do would be felt by the routes that come after.
        if caller == "home" and route in ("POST /w/<workspace>/settings/token/new", "POST /sign-out"):
            continue
        response = call(app, tokens[caller], method, rule)
        status = response.status_code
        detail = (response.get_json(silent=True) or {}).get("detail", "")
        response.close()
        refused = status == 403 or (status == 404 and detail == NO_WORKSPACE)
        if least == "anybody at all":
            fine = status != 403
        elif caller in ("revoked", "unknown"):
            fine = status == 401
        elif caller == "stranger" and least in ROLES:
            fine = status == 404
        elif least == "stranger" or CALLERS.index(caller) >= CALLERS.index(least):
            fine = status != 401 and not refused
        else:
            fine = status == 403
        if not fine or status >= 500:
            wrong.append((route, least, status, detail))
    assert wrong == []


def test_every_route_answers_503_if_tokens_cannot_be_checked(server, tokens, monkeypatch):
    def fail(*_args):
        raise StoreUnavailable("the server of the store cannot be used")

    _, app = server
    monkeypatch.setattr(people.People, "find_caller", fail)
    answered = {}
    for route, method, rule in list_routes(app):
        with call(app, tokens["owner"], method, rule) as response:
            answered[route] = response.status_code
    assert {route: status for route, status in answered.items() if status != 503} == {"GET /healthz": 200}
