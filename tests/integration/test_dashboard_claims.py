"""The page of claims: what projects name that is not their own, and a person who agrees or withdraws."""

import pytest

from pipeline.features.workspaces.usecases import list_claims
from tests.fakes.dashboard import sign_in

PAGE = "/w/default/claims"


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def claim(client, tmp_path):
    """Meet a project whose file names another's workspace; return the form of that claim."""
    client.write("Billing listens on port 8123", workspace="theirs")
    file = tmp_path / ".reverie.toml"
    file.write_text('workspace = "theirs"')
    client.post("/hooks/claude-code", {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)})
    return {"file": str(file), "claimed": "theirs"}


def test_page_without_claims_shows_no_requests(browser):
    assert "No requests." in browser.page(PAGE)


def test_a_person_agrees_and_takes_it_back(container, browser, claim):
    page = browser.page(PAGE)
    assert claim["file"] in page
    assert "not allowed" in page
    assert browser.post(f"{PAGE}/agree", claim).status_code == 303
    [agreed] = list_claims(container.settings)
    assert agreed.agreed
    assert ">Withdraw<" in browser.page(PAGE)
    browser.post(f"{PAGE}/withdraw", claim)
    assert [one.agreed for one in list_claims(container.settings)] == [False]


def test_agreeing_to_an_unclaimed_workspace_is_not_found(container, browser, claim):
    answer = browser.post(f"{PAGE}/agree", claim | {"claimed": "default"})
    assert answer.status_code == 404
    assert [one.workspace for one in list_claims(container.settings)] == ["theirs"]
