from dataclasses import replace

import click
import pytest
import urllib3

from pipeline.features.workspaces.identify import identify
from tests.fakes.command_line import run, run_json, serve_app


@pytest.fixture
def port(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        monkeypatch.setattr(container, "settings", replace(container.settings, port=port))
        yield port


def signs_in(url: str) -> bool:
    return urllib3.request("GET", url, redirect=False, retries=False).status == 303


def test_the_printed_link_signs_in_once(port):
    url = run("dashboard", "--print-url").stdout.strip()
    assert url.startswith(f"http://127.0.0.1:{port}/sign-in?code=")
    assert signs_in(url)
    assert not signs_in(url)


def test_the_link_in_json(port):
    link = run_json("dashboard", "--print-url")
    assert link["expires_in_s"] > 0
    assert signs_in(link["url"])


def test_a_browser_is_opened(port, monkeypatch):
    opened = []

    def launch(url: str) -> int:
        opened.append(url)
        return 0

    monkeypatch.setattr(click, "launch", launch)
    assert "opening" in run("dashboard").stdout
    assert signs_in(opened[0])


def test_where_no_browser_can_be_started_the_link_is_printed(port, monkeypatch):
    monkeypatch.setattr(click, "launch", lambda _url: 3)
    assert signs_in(run("dashboard").stdout.strip())


def test_without_a_server_it_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REVERIE_PORT", "9")
    assert "reverie up" in run("dashboard", "--print-url", code=1).stderr


@pytest.mark.parametrize("is_known", [True, False])
def test_the_link_opens_the_workspace_of_the_folder(port, container, tmp_path, monkeypatch, is_known):
    """A new project has an empty list; the memories of another folder are not in it."""
    run("remember", "The other folder sells tea")
    (tmp_path / "shop/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    if is_known:
        run("remember", "The shop sells ropes")
    url = run("dashboard", "--print-url").stdout.strip()
    signed_in = urllib3.request("GET", url, redirect=False, retries=False)
    own = identify(tmp_path / "shop").id
    assert signed_in.headers["Location"] == f"/w/{own}/"
    page = urllib3.request(
        "GET",
        f"http://127.0.0.1:{port}/w/{own}/timeline",
        headers={"Cookie": signed_in.headers["Set-Cookie"].split(";")[0]},
    )
    assert page.status == 200
    assert "sells tea" not in page.data.decode()
    assert ("sells ropes" in page.data.decode()) == is_known
