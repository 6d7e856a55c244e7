"""Signing in by OpenID Connect: as whom this home knows, by a provider that tells the truth and by one that lies."""

import contextlib
import http.client
import json
import subprocess
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc.jwk import OctKey, RSAKey

from config.settings import Secret
from pipeline.features.people import usecases as people
from pipeline.kernel.store.people import AccessQuery
from tests.fakes.client import HOST, CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from tests.fakes.oidc import CLIENT_ID, CLIENT_SECRET, LyingProvider
from tests.fakes.people import add_person
from tests.support.stack import free_port, wait_until
from web.http.app import create_app

HERE = {"Host": HOST}
TEAM = "team"
BEGIN = "/sign-in/provider"


@contextlib.contextmanager
def opened(home, issuer):
    """A home that the provider signs Ada in to, who writes in one workspace of two."""
    settings = fast_settings(
        home, oidc_issuer=issuer, oidc_client_id=CLIENT_ID, oidc_client_secret=Secret(CLIENT_SECRET)
    )
    container = open_web(settings)
    try:
        app = create_app(container)
        owner = CheckedClient(app, container.token)
        owner.write("The team meets at noon", workspace=TEAM)
        owner.write("A secret of somebody else", workspace="other")
        add_person(container, "Ada", **{TEAM: "writer"})
        people.set_email(container.people, people.get_person(container.people, "Ada"), "Ada@Example.com")
        yield container, app.test_client()
    finally:
        container.close()


@pytest.fixture
def provider():
    with LyingProvider().running() as provider:
        yield provider


@pytest.fixture
def place(tmp_path, provider):
    with opened(tmp_path / "home", provider.issuer) as place:
        yield place


@pytest.fixture
def container(place):
    return place[0]


@pytest.fixture
def browser(place):
    return place[1]


def begin(browser, provider):
    """Go to the provider; return what it is asked."""
    answer = browser.get(BEGIN, headers=HERE)
    assert answer.status_code == 302, answer.get_data(as_text=True)
    assert answer.headers["Location"].startswith(f"{provider.issuer}/authorize?")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
    provider.nonce = asked["nonce"]
    return asked


def come_back(browser, **told):
    return browser.get(f"/sign-in/done?{urlencode(told)}", headers=HERE)


def sign_in(browser, provider):
    return come_back(browser, code="a-code", state=begin(browser, provider)["state"])


def is_rejected(browser, answer, says, status=401):
    text = answer.get_data(as_text=True)
    assert answer.status_code == status, text
    assert answer.mimetype == "text/html"
    assert says in text
    return browser.get("/", headers=HERE).status_code == 401


def test_known_person_signs_in_with_their_own_access(browser, provider, container):
    page = browser.get("/", headers=HERE)
    assert page.status_code == 401
    assert f'href="{BEGIN}"' in page.get_data(as_text=True)
    asked = begin(browser, provider)
    assert asked["redirect_uri"] == f"http://{HOST}/sign-in/done"
    assert (asked["client_id"], asked["response_type"]) == (CLIENT_ID, "code")
    assert set(asked["scope"].split()) == {"openid", "email", "profile"}
    answer = come_back(browser, code="a-code", state=asked["state"])
    assert answer.status_code == 303
    assert "SameSite=Lax" in answer.headers["Set-Cookie"]
    [given] = provider.asked
    challenge = urlsafe_b64encode(sha256(given["code_verifier"].encode()).digest()).rstrip(b"=").decode()
    assert (asked["code_challenge"], asked["code_challenge_method"]) == (challenge, "S256")
    assert given["code"] == "a-code"
    overview = browser.get("/", headers=HERE)
    assert overview.status_code == 200
    text = browser.get(f"/w/{TEAM}/timeline", headers=HERE).get_data(as_text=True)
    assert "The team meets at noon" in text
    assert ">other<" not in text
    assert browser.get("/w/other/timeline", headers=HERE).status_code == 404
    entries = container.access_log.page(AccessQuery(), 10, None).items
    assert {(one.person, one.token_id) for one in entries} == {("ada", None)}


def test_over_tls_the_cookie_goes_by_nothing_else(browser, provider):
    state = begin(browser, provider)["state"]
    answer = browser.get(f"/sign-in/done?code=x&state={state}", headers=HERE, base_url=f"https://{HOST}")
    # Begun without TLS and ended with it: still one browser.
    assert answer.status_code == 303
    assert "Secure" in answer.headers["Set-Cookie"]


def test_a_state_is_good_once_and_in_the_browser_that_began(browser, provider, place):
    state = begin(browser, provider)["state"]
    other = place[0] and create_app(place[0]).test_client()
    assert is_rejected(other, come_back(other, code="a-code", state=state), "Try again on this page")
    assert is_rejected(browser, come_back(browser, code="a-code", state="made-up"), "Try again on this page")
    assert is_rejected(browser, come_back(browser, code="a-code"), "Try again on this page")
    assert provider.asked == []
    assert come_back(browser, code="a-code", state=begin(browser, provider)["state"]).status_code == 303
    assert come_back(browser, code="a-code", state=state).status_code == 401


def test_denied_provider_sign_in_is_rejected(browser, provider):
    state = begin(browser, provider)["state"]
    answer = come_back(browser, error="access_denied", error_description="<b>no</b>", state=state)
    assert is_rejected(browser, answer, "access_denied")
    assert "<b>no</b>" not in answer.get_data(as_text=True)


LIES = {
    "another nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "another issuer": {"claims": {"iss": "https://evil.example"}},
    "another client's": {"claims": {"aud": "another"}},
    "another client's, made for us": {"claims": {"aud": "another", "azp": CLIENT_ID}},
    "out of date": {"claims": {"exp": 1_000_000_000}},
    "of nobody": {"claims": {"sub": None}},
    "by another key": {"key": RSAKey.generate_key(2048, parameters={"kid": "one"})},
    "unsigned": {"header": {"alg": "none"}},
    "by a secret that both know": {"header": {"alg": "HS256"}, "key": OctKey.import_key(CLIENT_SECRET)},
}


@pytest.mark.parametrize("offered", [["RS256"], ["RS256", "HS256", "none"]], ids=["as usual", "anything offered"])
def test_only_a_valid_token_of_the_provider_opens_the_dashboard(browser, provider, offered):
    provider.metadata["id_token_signing_alg_values_supported"] = offered
    for lie, said in LIES.items():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in said.items():
                patch.setattr(provider, name, value)
            assert is_rejected(browser, sign_in(browser, provider), "Try again on this page"), lie


def test_sign_in_without_an_id_token_is_rejected(browser, provider):
    provider.has_id_token = False
    assert is_rejected(browser, sign_in(browser, provider), "no ID token", 502)


@pytest.mark.parametrize("text", ["", "x.y", "{}", "a.b.c"])
def test_invalid_id_token_is_rejected(browser, provider, text):
    provider.id_token = text or " "
    answer = sign_in(browser, provider)
    assert answer.status_code in (401, 502)
    assert browser.get("/", headers=HERE).status_code == 401


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"id_token_signing_alg_values_supported": ["none", "HS256"]},
        {"authorization_endpoint": None},
    ],
    ids=repr,
)
def test_provider_with_invalid_metadata_is_not_used(browser, provider, container, metadata):
    provider.metadata = metadata
    answer = browser.get(BEGIN, headers=HERE)
    assert is_rejected(browser, answer, "Sign-in is not available", 502)
    assert container.operations.errors(workspace=None, limit=1)[0].component == "sign-in"


def test_unknown_person_is_shown_that_they_have_no_account(browser, provider):
    provider.claims = {"email": "<eve>@example.com", "sub": "eve"}
    answer = sign_in(browser, provider)
    assert is_rejected(browser, answer, "You have no account on this server", 403)
    assert "&lt;eve&gt;@example.com" in answer.get_data(as_text=True)


def test_an_unverified_address_identifies_no_person(browser, provider):
    provider.claims = {"email_verified": False}
    assert is_rejected(browser, sign_in(browser, provider), "You have no account on this server", 403)


def test_a_subject_is_as_good(browser, provider, container):
    with pytest.raises(people.InvalidField):
        people.set_email(container.people, people.get_person(container.people, "ada"), "subject-1")
    # An earlier version stored it without the issuer.
    container.people.set_subject("ada", "", "subject-1")
    provider.claims = {"email_verified": False}
    assert sign_in(browser, provider).status_code == 303


@pytest.mark.parametrize("subject", ["ada@example.com", "ADA@example.com", " ada@example.com "])
@pytest.mark.parametrize("email", ["mallory@example.com", "", "ada@example.com"])
def test_subject_that_looks_like_an_address_opens_no_other_account(browser, provider, subject, email):
    provider.claims = {"sub": subject, "email": email, "email_verified": False}
    assert is_rejected(browser, sign_in(browser, provider), "You have no account on this server", 403)


def test_address_that_looks_like_a_subject_opens_no_other_account(browser, provider, container):
    ada = people.get_person(container.people, "ada")
    issuer = container.settings.oidc_issuer
    people.set_subject(container.people, ada, issuer, "ada-7")
    for email in ("ada-7", f"{issuer} ada-7"):
        provider.claims = {"sub": "mallory", "email": email, "email_verified": True}
        assert is_rejected(browser, sign_in(browser, provider), "You have no account on this server", 403)
    provider.claims = {"sub": "ada-7", "email_verified": False}
    assert sign_in(browser, provider).status_code == 303


def test_a_subject_of_another_issuer_opens_no_account(browser, provider, container):
    people.set_subject(container.people, people.get_person(container.people, "ada"), "https://other.example", "ada-7")
    provider.claims = {"sub": "ada-7", "email_verified": False}
    assert is_rejected(browser, sign_in(browser, provider), "user add NAME --subject ada-7", 403)


def test_two_people_are_not_known_by_one_address(container):
    add_person(container, "Bob")
    with pytest.raises(people.Conflict):
        people.set_email(container.people, people.get_person(container.people, "bob"), "ada@EXAMPLE.com")


def test_removed_or_revoked_person_is_signed_out(browser, provider, container):
    ada = people.get_person(container.people, "ada")
    sign_in(browser, provider)
    people.revoke(container.people, ada)
    assert browser.get("/", headers=HERE).status_code == 401
    # The provider still vouches for who was only signed out.
    assert sign_in(browser, provider).status_code == 303
    assert browser.get("/", headers=HERE).status_code == 200
    people.remove_person(container.people, ada)
    assert browser.get("/", headers=HERE).status_code == 401
    assert is_rejected(browser, sign_in(browser, provider), "You have no account on this server", 403)


def test_unreachable_provider_is_reported_on_a_page(tmp_path):
    port = free_port()
    with opened(tmp_path / "home", f"http://127.0.0.1:{port}") as (container, browser):
        answer = browser.get(BEGIN, headers=HERE)
        assert is_rejected(browser, answer, "Cannot reach the provider", 502)
        assert "Cannot reach the provider" in container.operations.errors(workspace=None, limit=1)[0].message
        # Once it is there, all is well.
        with LyingProvider(port).running() as provider:
            assert sign_in(browser, provider).status_code == 303
            state = begin(browser, provider)["state"]
        assert come_back(browser, code="a-code", state=state).status_code == 502


def test_where_no_provider_is_set_there_is_no_such_page(tmp_path):
    with opened(tmp_path / "home", "") as (_container, browser):
        assert browser.get(BEGIN, headers=HERE).status_code == 404
        assert BEGIN not in browser.get("/", headers=HERE).get_data(as_text=True)


def test_a_sign_in_that_is_begun_often_leaves_one_state_in_the_cookie(browser, provider):
    for _ in range(20):
        state = begin(browser, provider)["state"]
    with browser.session_transaction(base_url=f"http://{HOST}") as session:
        assert len([name for name in session if name.startswith("_state_")]) == 1
    assert come_back(browser, code="a-code", state=state).status_code == 303


@pytest.fixture
def real_provider(tmp_path):
    """A provider of somebody else's making."""
    port = free_port()
    claims = json.dumps({"sub": "ada", "email": "ada@example.com", "email_verified": True})
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    log = (tmp_path / "provider.log").open("wb")
    process = subprocess.Popen([*command, "--user-claims", claims], stdout=log, stderr=log)
    log.close()

    def is_up():
        assert process.poll() is None, (tmp_path / "provider.log").read_text()
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as asked:
            asked.request("GET", "/.well-known/openid-configuration")
            return asked.getresponse().status == 200

    wait_until("the provider answers", is_up)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


def test_sign_in_works_end_to_end_with_a_third_party_provider(tmp_path, real_provider):
    with opened(tmp_path / "home", real_provider) as (_container, browser):
        there = urlsplit(browser.get(BEGIN, headers=HERE).headers["Location"])
        with contextlib.closing(http.client.HTTPConnection(there.netloc)) as provider:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            provider.request("POST", f"{there.path}?{there.query}", urlencode({"sub": "ada"}), form)
            back = urlsplit(provider.getresponse().headers["Location"])
        assert back.netloc == HOST
        assert browser.get(f"{back.path}?{back.query}", headers=HERE).status_code == 303
        page = browser.get(f"/w/{TEAM}/timeline", headers=HERE)
        assert "The team meets at noon" in page.get_data(as_text=True)
