"""The settings page: the value in force and its origin, a workspace's own values, incognito sessions, the token."""

import html
import re

import pytest

from config.settings import SETTINGS, WORKSPACE_SETTINGS
from tests.fakes.client import CheckedClient
from tests.fakes.dashboard import sign_in

PAGE = "/w/default/settings"


@pytest.fixture
def browser(client):
    return sign_in(client)


def row(page, name):
    """Return what the page says of a setting, without tags."""
    [found] = [part.partition("</li>")[0] for part in page.split('<li class="row">') if f'class="name">{name}<' in part]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())


def own(container, workspace="default"):
    return container.settings.paths.workspace(workspace).config


def set_value(browser, name, value):
    return browser.post(f"{PAGE}/value", {"name": name, "value": value})


def test_every_setting_is_shown_with_value_help_and_origin(container, browser, monkeypatch):
    page = browser.page(PAGE)
    for name, field in SETTINGS.items():
        if name == "incognito":
            continue
        text = row(page, name)
        assert field.help in text, name
        if name not in WORKSPACE_SETTINGS | {"store", "llm_api_key", "oidc_client_secret", "home"}:
            assert (
                f"{name} {getattr(container.settings, name) if str(getattr(container.settings, name)) else 'empty'} "
                in text
            )
    assert "embedding_model hash" in row(page, "embedding_model")
    config = container.settings.paths.config
    line = config.read_text().splitlines().index('embedding_model = "hash"') + 1
    assert f"config.toml line {line} of {config}" in row(page, "embedding_model")
    assert "default REVERIE_WEB_THREADS" in row(page, "web_threads")
    assert "environment REVERIE_HOME" in row(page, "home")


def test_settings_page_shows_values_pending_until_the_next_start(container, browser, monkeypatch):
    config = container.settings.paths.config
    config.write_text(f"{config.read_text()}port = 7099\n")
    assert "port 7077" in row(browser.page(PAGE), "port")
    assert "7099 after the next start" in row(browser.page(PAGE), "port")
    monkeypatch.setenv("REVERIE_PORT", "7100")
    assert "environment REVERIE_PORT 7100 after the next start" in row(browser.page(PAGE), "port")


def test_no_secret_is_shown(browser, monkeypatch):
    monkeypatch.setenv("REVERIE_LLM_API_KEY", "sk-hunter2hunter2")
    monkeypatch.setenv("REVERIE_QUEUE_URL", "redis://:hunter2hunter2@localhost:6379/0")
    page = browser.page(PAGE)
    assert "hunter2" not in page
    assert "set, hidden after the next start" in row(page, "llm_api_key")
    assert "localhost:6379" in row(page, "queue_url")


def test_invalid_config_file_is_reported_and_other_settings_still_work(container, browser):
    container.settings.paths.config.write_text("prot = 1\n")
    page = browser.page(PAGE)
    assert "unknown setting prot; did you mean port?" in html.unescape(page)
    assert "port 7077" in row(page, "port")
    assert set_value(browser, "review", "true").status_code == 303
    assert own(container).read_text() == "review = true\n"


def test_workspace_setting_can_be_set_and_reset(client, container, browser):
    file = own(container)
    file.parent.mkdir(parents=True)
    file.write_text("# ours\nhook_max_chars = 2000 # short\n")
    assert set_value(browser, "review", "true").status_code == 303
    assert set_value(browser, "hook_max_chars", "3000").status_code == 303
    assert file.read_text() == "# ours\nhook_max_chars = 3000 # short\nreview = true\n"
    assert container.workspace("default").settings.review
    assert not container.workspace("another").settings.review
    page = browser.page(PAGE)
    assert "review true" in row(page, "review")
    assert "this workspace" in row(page, "review")
    assert "default 10" in row(page, "hook_budget_ms")
    assert set_value(browser, "review", "").status_code == 303
    assert file.read_text() == "# ours\nhook_max_chars = 3000 # short\n"
    assert client.write("A memory that is kept", kind="decision")


def test_a_change_is_taken_back(container, browser):
    set_value(browser, "recall_budget_ms", "900")
    page = browser.page(PAGE)
    assert "recall_budget_ms is 900, in this workspace." in page
    browser.submit_in(page, "Undo")
    assert container.workspace("default").settings.recall_budget_ms == container.settings.recall_budget_ms
    assert own(container).read_text() == ""
    set_value(browser, "recall_budget_ms", "900")
    set_value(browser, "recall_budget_ms", "901")
    browser.submit_in(browser.page(PAGE), "Undo")
    assert own(container).read_text() == "recall_budget_ms = 900\n"


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("hook_max_chars", "1", 422),
        ("hook_max_chars", "-4000", 422),
        ("hook_max_chars", "4e3", 422),
        ("hook_max_chars", "٣٠٠٠", 422),
        ("hook_max_chars", "9" * 32, 422),
        ("hook_max_chars", "9" * 5000, 422),
        ("review", "perhaps", 422),
        ("port", "7099", 404),
        ("nothing", "1", 404),
    ],
)
def test_invalid_setting_change_is_rejected_and_writes_nothing(container, browser, name, value, status):
    assert set_value(browser, name, value).status_code == status
    assert not own(container).exists()


def test_unparsable_workspace_config_is_not_overwritten(container, browser):
    file = own(container)
    file.parent.mkdir(parents=True)
    file.write_text("review = tru")
    assert set_value(browser, "review", "true").status_code == 409
    assert file.read_text() == "review = tru"
    assert "workspaces/default/config.toml" in browser.page(PAGE).partition('role="alert"')[2]


def test_the_environment_is_stronger_and_no_control_pretends_otherwise(browser, monkeypatch):
    monkeypatch.setenv("REVERIE_REVIEW", "true")
    page = browser.page(PAGE)
    assert "environment variable REVERIE_REVIEW" in row(page, "review")
    part = page.partition('class="name">review<')[2].partition("</li>")[0]
    assert '<select name="value" aria-label="review in this workspace" disabled>' in part


def test_a_workspace_becomes_incognito_and_back(client, container, browser):
    client.write("The port is 8123")
    page = browser.submit(PAGE, "Turn on incognito")
    assert "This workspace is incognito." in page
    assert container.workspace("default").write_policy().incognito
    page = browser.submit(PAGE, "Turn off incognito")
    assert "Reverie stores memories in this workspace." in page
    assert not container.workspace("default").write_policy().incognito
    assert own(container).read_text() == ""


def test_workspace_can_turn_off_a_global_incognito_setting(container, browser):
    config = container.settings.paths.config
    config.write_text(f"{config.read_text()}incognito = true\n")
    own(container).parent.mkdir(parents=True)
    own(container).write_text("review = true\n")
    browser.submit(PAGE, "Turn off incognito")
    assert own(container).read_text() == "review = true\nincognito = false\n"


def test_sessions_become_incognito_and_back(client, container, browser):
    assert "No incognito sessions." in browser.page(PAGE)
    page = browser.submit(PAGE, "Start incognito", session_id=" s1 ")
    assert [item["session_id"] for item in client.get("/v1/incognito").get_json()["items"]] == ["s1"]
    page = browser.submit_in(page, "Undo")
    assert client.get("/v1/incognito").get_json()["items"] == []
    for number in range(51):
        client.post("/v1/incognito", {"session_id": f"session-{number}"})
    page = browser.page(PAGE)
    assert page.count("End incognito</button>") == 50
    rest = browser.follow(page, "Older")
    assert re.findall(r"<code class=\"grow\">([^<]+)</code>", rest) == ["session-0"]
    browser.submit_in(rest, "End incognito")
    assert len(client.get("/v1/incognito").get_json()["items"]) == 50


def test_a_new_token_is_made_in_a_second_step_and_this_browser_stays(client, container, app, browser):
    other, before = sign_in(client), container.token
    page = browser.follow(browser.page(PAGE), "Create new token …")
    assert container.token == before
    assert "Create a new token?" in page
    answer = browser.submit_in(page, "Create new token")
    assert "New token created." in answer
    assert container.token != before
    assert container.token == container.settings.paths.token()
    assert container.settings.paths.token_file.stat().st_mode & 0o777 == 0o600
    assert other.get(PAGE).status_code == 401
    assert browser.get(PAGE).status_code == 200
    assert client.get("/v1/incognito").status_code == 401
    assert CheckedClient(app, container.token).get("/v1/workspaces").status_code == 200
    assert container.token not in answer


def test_world_readable_token_is_reported(container, browser):
    container.settings.paths.token_file.chmod(0o644)
    assert "other users (mode 0644)" in browser.page(PAGE)
    container.settings.paths.token_file.unlink()
    assert "keeps using the current token" in browser.page(PAGE)


def test_settings_are_there_before_the_first_memory(container, browser):
    assert "review" in browser.page("/w/unheard-of/settings")
    # Where nothing was ever written nobody is incognito, and to say so makes no workspace.
    assert browser.post("/w/unheard-of/settings/sessions/unsilence", {"session_id": "s"}).status_code == 303
    assert "unheard-of" not in container.settings.paths.workspace_ids()


def test_keys_are_turned_off_by_a_switch_that_is_there_only_for_scripts(browser):
    part = browser.page(PAGE).partition('id="browser"')[2].partition("</section>")[0]
    assert re.search(r"<p hidden><label><input type=\"checkbox\"[^>]*> Single-key shortcuts</label>", part)
    assert "focuses the search field" in part
