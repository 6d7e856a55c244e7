"""Who may open the dashboard, and what a browser that did may do."""

import hmac
import re
from dataclasses import replace

import pytest
from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from tests.fakes.client import HOST
from tests.fakes.in_process import fast_settings, open_web
from web.dashboard.shared_sessions import Holder
from web.dashboard.sign_in import (
    LINK_LIFETIME_S,
    MOST_LINKS,
    MOST_SESSIONS,
    SESSION_LIFETIME,
    SESSIONS,
    Links,
    Sessions,
    sign_sessions_with,
)
from web.http.app import create_app

HERE = {"Host": HOST}
COOKIE = "reverie-7077"


@pytest.fixture
def container(tmp_path):
    container = open_web(fast_settings(tmp_path / "home"))
    yield container
    container.close()


@pytest.fixture
def token(container):
    return {**HERE, "Authorization": f"Bearer {container.token}"}


@pytest.fixture
def browser(app, token):
    """A browser that followed a link."""
    browser = app.test_client()
    assert browser.get(link(app, token), headers=HERE).status_code == 303
    return browser


def link(app, token) -> str:
    answer = app.test_client().post("/v1/dashboard/links", headers=token)
    assert answer.status_code == 201
    assert answer.json["url"].startswith(f"http://{HOST}/sign-in?code=")
    return answer.json["url"].removeprefix(f"http://{HOST}")


def csrf(browser) -> str:
    page = browser.get("/w/default/goals", headers=HERE).get_data(as_text=True)
    return re.search(r'name="csrf" value="([^"]+)"', page)[1]


def test_a_stranger_sees_how_to_sign_in_and_nothing_else(app):
    answer = app.test_client().get("/", headers=HERE)
    assert answer.status_code == 401
    assert answer.mimetype == "text/html"
    assert "reverie dashboard" in answer.get_data(as_text=True)
    assert app.test_client().get("/w/default/goals", headers=HERE).status_code == 401


def test_a_link_is_made_for_the_token_alone(app):
    assert app.test_client().post("/v1/dashboard/links", headers=HERE).status_code == 401


def test_a_link_signs_in_once(app, token):
    path = link(app, token)
    browser = app.test_client()
    assert browser.head(path, headers=HERE).status_code == 200
    first = browser.get(path, headers=HERE)
    assert first.status_code == 303
    assert first.headers["Location"] == "/"
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert browser.get("/", headers=HERE).status_code == 200
    other = app.test_client()
    assert other.get(path, headers=HERE).status_code == 401
    assert other.get("/", headers=HERE).status_code == 401


@pytest.mark.parametrize("code", ["", "wrong", "%00", "é", "a" * 5000])
def test_a_wrong_code_opens_nothing(app, code):
    browser = app.test_client()
    assert browser.get(f"/sign-in?code={code}", headers=HERE).status_code == 401
    assert browser.get("/", headers=HERE).status_code == 401


def test_a_link_grows_old_and_the_oldest_of_many_is_forgotten():
    now = [0.0]
    links = Links(lambda: now[0])
    old = links.make(Holder())
    now[0] = LINK_LIFETIME_S
    assert not links.redeem(old)
    codes = [links.make(Holder()) for _ in range(MOST_LINKS + 1)]
    assert [links.redeem(code) is not None for code in codes] == [False] + [True] * MOST_LINKS


def test_the_cookie_opens_no_route_of_the_api(browser):
    assert browser.get("/v1/stats", headers=HERE).status_code == 401
    assert browser.post("/v1/dashboard/links", headers=HERE).status_code == 401
    assert browser.get("/openapi.json", headers=HERE).status_code == 401


def test_the_token_opens_the_pages_too(app, token):
    assert app.test_client().get("/", headers=token).status_code == 200
    assert app.test_client().get("/", headers={**HERE, "Authorization": "Bearer wrong"}).status_code == 401


def test_changed_cookie_is_rejected(app, browser):
    value = browser.get_cookie("reverie-7077", domain="127.0.0.1").value
    # Of the last character some bits are none of the signature's.
    other = "b" if value[-9] == "a" else "a"
    browser.set_cookie("reverie-7077", f"{value[:-9]}{other}{value[-8:]}", domain="127.0.0.1")
    assert browser.get("/", headers=HERE).status_code == 401


def test_a_new_token_ends_every_cookie(app, browser):
    sign_sessions_with(app, "another token")
    assert browser.get("/", headers=HERE).status_code == 401


def test_without_a_token_no_cookie_can_be_computed(app):
    sign_sessions_with(app, "")
    forger = Flask("forger")
    forger.secret_key = hmac.digest(b"", b"dashboard sessions reverie-7077", "sha256")
    forged = {"id": app.extensions[SESSIONS].begin(), "csrf": "x"}
    cookie = SecureCookieSessionInterface().get_signing_serializer(forger).dumps(forged)
    stranger = app.test_client()
    stranger.set_cookie("reverie-7077", cookie, domain="127.0.0.1")
    assert stranger.get("/", headers=HERE).status_code == 401


def test_a_new_token_ends_cookies_links_and_the_old_token(app, container, token, browser):
    path = link(app, token)
    container.settings.paths.renew_token()
    assert browser.get("/", headers=HERE).status_code == 401
    assert app.test_client().get(path, headers=HERE).status_code == 401
    assert app.test_client().get("/v1/workspaces", headers=token).status_code == 401
    now = {**HERE, "Authorization": f"Bearer {container.token}"}
    assert app.test_client().get("/v1/workspaces", headers=now).status_code == 200
    assert app.test_client().get(link(app, now), headers=HERE).status_code == 303


def test_a_change_needs_a_form_of_this_browser(app, token, browser):
    goal = app.test_client().post("/v1/goals", json={"title": "Ship it"}, headers=token).json["id"]
    path = f"/w/default/goals/{goal}/status"

    def status() -> str:
        return app.test_client().get("/v1/goals", headers=token).json["items"][0]["status"]

    for forged in ("", "wrong", "é"):
        assert browser.post(path, data={"status": "done", "csrf": forged}, headers=HERE).status_code == 403
    assert status() == "open"
    assert browser.post(path, data={"status": "done", "csrf": csrf(browser)}, headers=HERE).status_code == 303
    assert status() == "done"


def test_no_form_changes_anything_without_its_token(app, browser):
    forms = [
        rule for rule in app.url_map.iter_rules() if "POST" in rule.methods and rule.endpoint.startswith("dashboard.")
    ]
    assert len(forms) > 15
    stranger = app.test_client()
    mine = csrf(browser)
    for rule in forms:
        path = re.sub(r"<[^>]+>", "default", rule.rule)
        assert stranger.post(path, headers=HERE, data={"csrf": mine}).status_code == 401, path
        for forged in ({}, {"csrf": ""}, {"csrf": mine[:-1]}, {"csrf": f"{mine}x"}):
            assert browser.post(path, headers=HERE, data=forged).status_code == 403, path
        assert browser.post(f"{path}?csrf={mine}", headers=HERE).status_code == 403, path


def test_a_form_of_another_site_is_refused(browser):
    stolen = {"status": "done", "csrf": csrf(browser)}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9"):
        answer = browser.post("/w/default/goals/x/status", data=stolen, headers={**HERE, "Origin": origin})
        assert answer.status_code == 403


def test_a_foreign_host_is_refused(browser):
    assert browser.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_signing_out_needs_a_form_of_this_browser(browser):
    for forged in ({}, {"csrf": "wrong"}):
        answer = browser.post("/sign-out", headers=HERE, data=forged)
        assert answer.status_code == 403
        assert answer.mimetype == "text/html"
    assert browser.get("/", headers=HERE).status_code == 200


def test_an_overview_without_its_last_slash_is_found(app, token, browser):
    app.test_client().post("/v1/goals", json={"title": "Ship it"}, headers=token)
    answer = browser.get("/w/default", headers=HERE)
    assert answer.headers["Location"] == "/w/default/"
    assert browser.get("/w/default", headers=HERE, follow_redirects=True).status_code == 200
    assert browser.get("/w/BAD", headers=HERE, follow_redirects=True).status_code == 404
    stranger = app.test_client().get("/w/default", headers=HERE)
    assert stranger.status_code == 401
    assert stranger.mimetype == "text/html"


def test_signing_out_forgets_the_browser(browser):
    assert browser.post("/sign-out", headers=HERE, data={"csrf": csrf(browser)}).status_code == 200
    assert browser.get("/", headers=HERE).status_code == 401


def test_signing_out_ends_the_session_and_no_other(app, token, browser):
    other = app.test_client()
    other.get(link(app, token), headers=HERE)
    copied = browser.get_cookie(COOKIE, domain="127.0.0.1").value
    browser.post("/sign-out", headers=HERE, data={"csrf": csrf(browser)})
    assert with_cookie(app, COOKIE, copied).get("/", headers=HERE).status_code == 401
    assert other.get("/", headers=HERE).status_code == 200


def test_signing_in_again_ends_the_session_before(app, token, browser):
    copied = browser.get_cookie(COOKIE, domain="127.0.0.1").value
    browser.get(link(app, token), headers=HERE)
    assert browser.get("/", headers=HERE).status_code == 200
    assert with_cookie(app, COOKIE, copied).get("/", headers=HERE).status_code == 401


def test_a_session_and_its_end_outlive_the_server(app, container, token, browser):
    ended = app.test_client()
    ended.get(link(app, token), headers=HERE)
    kept, lost = (one.get_cookie(COOKIE, domain="127.0.0.1").value for one in (browser, ended))
    ended.post("/sign-out", headers=HERE, data={"csrf": csrf(ended)})
    again = create_app(container)
    assert with_cookie(again, COOKIE, kept).get("/", headers=HERE).status_code == 200
    assert with_cookie(again, COOKIE, lost).get("/", headers=HERE).status_code == 401


def test_cookie_of_another_port_is_rejected(container, browser):
    # The same home and the same token: only the port differs.
    settings = replace(container.settings, port=7078)
    container.settings = settings
    elsewhere = create_app(container)
    copied = browser.get_cookie(COOKIE, domain="127.0.0.1").value
    for name in (COOKIE, "reverie-7078"):
        assert with_cookie(elsewhere, name, copied).get("/", headers=HERE).status_code == 401, name


def test_lost_or_broken_session_file_signs_all_browsers_out(container, browser):
    file = container.settings.paths.sessions
    assert file.stat().st_mode & 0o777 == 0o600
    kept = file.read_bytes()
    for broken in (b"", b"[1]", b'{"a": "b"}', b"\xff"):
        file.write_bytes(broken)
        assert browser.get("/", headers=HERE).status_code == 401, broken
    file.write_bytes(kept)
    assert browser.get("/", headers=HERE).status_code == 200
    file.unlink()
    assert browser.get("/", headers=HERE).status_code == 401


def test_session_file_contains_no_plain_session_ids_and_has_a_limit(tmp_path):
    now = [1000.0]
    sessions = Sessions(tmp_path / "sessions", lambda: now[0])
    names = []
    for _ in range(MOST_SESSIONS + 1):
        now[0] += 1
        names.append(sessions.begin())
    assert [sessions.is_valid(name) for name in names] == [False] + [True] * MOST_SESSIONS
    written = (tmp_path / "sessions").read_text()
    assert not any(name in written for name in names)
    now[0] += SESSION_LIFETIME.total_seconds()
    assert not any(map(sessions.is_valid, names))
    assert not any(map(sessions.is_valid, (None, "", 1, True, [], {})))


def with_cookie(app, name: str, value: str):
    stranger = app.test_client()
    stranger.set_cookie(name, value, domain="127.0.0.1")
    return stranger


def test_every_page_forbids_inline_scripts_frames_and_caches(browser):
    for path in ("/", "/w/default/goals", "/w/default/none-such", "/w/BAD/goals"):
        answer = browser.get(path, headers=HERE)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        page = answer.get_data(as_text=True)
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|javascript:", page)


def test_redirect_after_a_form_stays_on_the_own_origin(app, token, browser):
    goal = app.test_client().post("/v1/goals", json={"title": "Ship it"}, headers=token).json["id"]
    for referer in ("http://evil.example/w/default/goals", f"http://{HOST}//evil.example", "javascript:alert(1)"):
        form = {"status": "done", "csrf": csrf(browser)}
        answer = browser.post(f"/w/default/goals/{goal}/status", data=form, headers={**HERE, "Referer": referer})
        assert answer.headers["Location"] == "/w/default/"


def test_mistakes_are_pages_and_name_the_field(browser, app, token):
    app.test_client().post("/v1/goals", json={"title": "Ship it"}, headers=token)
    wrong = browser.get("/w/default/goals?status=never", headers=HERE)
    assert wrong.status_code == 422
    assert "status" in wrong.get_data(as_text=True)
    assert browser.get("/w/default/goals?nonsense=1", headers=HERE).status_code == 422
    assert browser.get("/w/No-Workspace/goals", headers=HERE).status_code == 404
    missing = browser.post("/w/default/goals/none/status", data={"status": "done", "csrf": csrf(browser)}, headers=HERE)
    assert missing.status_code == 404
    assert missing.mimetype == "text/html"


def test_a_workspace_without_a_memory_says_how_to_begin(browser):
    answer = browser.get("/w/unheard-of/goals", headers=HERE)
    assert answer.status_code == 200
    assert "reverie setup" in answer.get_data(as_text=True)


def test_the_workspace_that_was_looked_at_is_shown_again(app, token, browser):
    for workspace in ("alpha", "beta"):
        there = {**token, "X-Reverie-Workspace": workspace}
        app.test_client().post("/v1/memories", json={"content": f"Something about {workspace}"}, headers=there)
    browser.get("/w/alpha/goals", headers=HERE)
    assert 'data-workspace="alpha"' in browser.get("/", headers=HERE).get_data(as_text=True)
    browser.get("/w/beta/goals", headers=HERE)
    assert 'data-workspace="beta"' in browser.get("/", headers=HERE).get_data(as_text=True)
