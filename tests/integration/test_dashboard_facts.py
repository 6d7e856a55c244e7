"""Facts on the dashboard: by subject, in time, set, ended and taken back."""

from urllib.parse import urlencode

import pytest

from pipeline.kernel.records import FactKey, Scope
from pipeline.kernel.store import facts
from tests.fakes.dashboard import sign_in
from web.dashboard.view import PAGE_SIZE
from web.features.facts.page import SHOWN_OF_SUBJECT

EARLY, MIDDLE, LATE = (f"2026-0{month}-01T00:00:00.000Z" for month in (1, 2, 3))
FUTURE = "2126-01-01T00:00:00.000Z"


@pytest.fixture
def browser(client):
    return sign_in(client)


def put_fact(client, value, subject="staging", attribute="port", **fields):
    answer = client.put(f"/v1/facts/{subject}/{attribute}", {"value": value, **fields})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()["id"]


def value(client, **query):
    answer = client.get("/v1/facts/staging/port", query_string=query)
    return None if answer.status_code == 404 else answer.get_json()["value"]


def spans(client):
    items = client.get("/v1/facts/staging/port/history").get_json()["items"]
    return [(fact["value"], fact["valid_from"], fact["valid_to"]) for fact in items]


def one(subject="staging", attribute="port", **query):
    return f"/w/default/facts/one?{urlencode({'subject': subject, 'attribute': attribute, **query})}"


def of(subject, **query):
    return f"/w/default/facts/of?{urlencode({'subject': subject, **query})}"


def test_fact_subjects_are_listed_by_name_with_current_values(client, browser):
    put_fact(client, "old value", valid_from=EARLY)
    put_fact(client, "new value", valid_from=MIDDLE)
    put_fact(client, "CET", subject="ada", attribute="time zone")
    page = browser.page("/w/default/facts").partition("By subject")[2]
    assert page.index("ada") < page.index("CET") < page.index("staging") < page.index("new value")
    assert "old value" not in page


def test_latest_values_leave_out_replaced_ended_and_future_values(client, browser):
    put_fact(client, "replaced", valid_from=EARLY)
    put_fact(client, "current", valid_from=MIDDLE)
    put_fact(client, "future", attribute="owner", valid_from=FUTURE)
    put_fact(client, "ended", attribute="broker", valid_from=EARLY)
    assert "ended" in latest_values(browser)
    assert client.delete("/v1/facts/staging/broker").status_code == 200
    page = latest_values(browser)
    assert [text in page for text in ("current", "replaced", "future", "ended")] == [True, False, False, False]


def latest_values(browser):
    return browser.page("/w/default/facts").partition("Latest values")[2].partition("By subject")[0]


def test_subject_list_shows_only_the_first_attributes(client, browser):
    for number in range(SHOWN_OF_SUBJECT + 2):
        put_fact(client, f"value-{number}", attribute=f"setting {number}")
    page = browser.page("/w/default/facts").partition("By subject")[2]
    assert [f"value-{n}" in page for n in range(SHOWN_OF_SUBJECT + 2)] == [True] * SHOWN_OF_SUBJECT + [False] * 2
    assert "value-7" in browser.follow(page, "and more")


def test_every_subject_is_listed_exactly_once_across_pages(client, browser):
    names = [f"subject {number:03d} alone" for number in range(PAGE_SIZE + 3)]
    for name in names:
        put_fact(client, 1, subject=name)
    first = browser.page("/w/default/facts").partition("By subject")[2]
    second = browser.follow(first, "More subjects")
    assert [name for page in (first, second) for name in names if name in page] == names
    assert 'rel="next"' not in second


def test_every_key_of_a_subject_is_listed_across_pages(client, browser):
    for number in range(PAGE_SIZE + 1):
        put_fact(client, number, attribute=f"setting {number:03d}")
    scopes = [{"kind": "user"}, {"kind": "session", "id": "s1"}, {"kind": "session", "id": "s2"}]
    for scope in scopes:
        put_fact(client, "scoped", attribute="setting 050", scope=scope)
    first = browser.page(of("staging"))
    second = browser.follow(first, "More attributes")
    assert all(f"setting {number:03d}" in first for number in range(PAGE_SIZE - 1))
    assert second.count("scoped</b>") + first.count("scoped</b>") == len(scopes)


@pytest.mark.parametrize("words", ["staging", "PORT", "db-stage", "stage example", "staging-port", "100%"])
def test_a_fact_is_found_by_its_words(client, browser, words):
    put_fact(client, "db-stage.example at 100%")
    put_fact(client, "CET", subject="ada", attribute="time zone")
    page = browser.page(f"/w/default/facts?{urlencode({'q': words})}")
    assert "db-stage.example" in page
    assert "ada" not in page


@pytest.mark.parametrize("words", ["nowhere", "_", "%", "staging CET", "\\"])
def test_fact_search_without_matches_shows_no_results(client, browser, words):
    put_fact(client, 5432)
    put_fact(client, "CET", subject="ada", attribute="time zone")
    assert "No results" in browser.page(f"/w/default/facts?{urlencode({'q': words})}")


def test_subject_page_shows_the_values_of_any_time(client, browser):
    put_fact(client, "first", valid_from=EARLY)
    put_fact(client, "second", valid_from=MIDDLE)
    put_fact(client, "later", attribute="host", valid_from=LATE)
    then = browser.page(of("staging", as_of="2026-01-15T00:00"))
    assert "<b>first</b>" in then
    assert "now second" in then
    assert "no value" in then
    assert "<b>second</b>" in browser.follow(then, "Later change, 2026-02-01 00:00 ›")
    assert "<b>later</b>" in browser.page(of("staging"))


def test_fact_page_lists_its_values_over_time(client, browser):
    first = put_fact(client, "first value", valid_from=EARLY)
    put_fact(client, "second value", valid_from=MIDDLE)
    put_fact(client, "coming value", valid_from=FUTURE)
    page = browser.page(one())
    listed = page.partition("Values, newest first")[2]
    assert listed.index("coming value") < listed.index("second value") < listed.index("first value")
    assert [listed.count(state) for state in (">future<", ">current<", ">past<")] == [1, 1, 1]
    assert f'href="#v-{first}"' in page
    assert f'id="v-{first}"' in page
    assert f"/memories/{first}" in page
    then = browser.page(one(as_of=EARLY))
    assert "<b>first value</b>" in then
    assert "now second value" in then
    assert "no value" in browser.page(one(as_of="2025-01-01"))


def test_every_value_of_a_fact_is_listed_once_across_pages(client, browser, container):
    ids = [put_fact(client, number, valid_from=f"2020-01-01T00:00:{number:02d}Z") for number in range(PAGE_SIZE + 3)]
    first = browser.page(one())
    second = browser.follow(first, "Older")
    assert [identity for page in (second, first) for identity in ids if f'id="v-{identity}"' in page] == ids


def test_a_value_is_set_and_taken_back(client, browser):
    put_fact(client, 5432, valid_from=EARLY)
    page = browser.submit(one(), "Set", value="6543", reading="number", valid_from="2026-02-01T00:00")
    assert "port of staging is 6543 from 2026-02-01 00:00 UTC." in page
    assert spans(client) == [(5432, EARLY, MIDDLE), (6543, MIDDLE, None)]
    assert "was removed" in browser.submit_in(page, "Undo")
    assert spans(client) == [(5432, EARLY, None)]


def test_ending_a_fact_value_can_be_undone(client, browser):
    put_fact(client, 5432, valid_from=EARLY)
    put_fact(client, 6543, valid_from=LATE)
    page = browser.submit(one(), "End", valid_to="2026-02-01T00:00")
    assert value(client, as_of=MIDDLE) is None
    assert value(client) == 6543
    browser.submit_in(page, "Undo")
    assert spans(client) == [(5432, EARLY, LATE), (6543, LATE, None)]


def test_value_cannot_end_before_its_start(client, browser):
    put_fact(client, 5432, valid_from=LATE)
    page = browser.page(one())
    assert browser.post("/w/default/facts/end", {**_key(), "valid_to": "2026-01-01"}).status_code == 404
    assert "End the current value" in page
    assert spans(client) == [(5432, LATE, None)]


@pytest.mark.parametrize(
    ("given", "reading", "stored"),
    [
        ("3.10", "text", "3.10"),
        ("5432", "number", 5432),
        (" -0.5 ", "number", -0.5),
        ("Yes", "truth", True),
        ("false", "truth", False),
    ],
)
def test_fact_value_is_stored_with_the_chosen_type(client, browser, given, reading, stored):
    put_fact(client, "before", valid_from=EARLY)
    browser.submit(one(), "Set", value=given, reading=reading)
    assert repr(value(client)) == repr(stored)


@pytest.mark.parametrize(
    ("given", "reading"), [("x", "number"), ("nan", "number"), ("maybe", "truth"), ("\u200b", "text"), ("x", "colour")]
)
def test_invalid_fact_value_is_rejected_and_changes_nothing(client, browser, given, reading):
    put_fact(client, "before", valid_from=EARLY)
    answer = browser.post("/w/default/facts/value", {**_key(), "value": given, "reading": reading})
    assert answer.status_code == 422
    assert value(client) == "before"


def test_the_same_value_again_is_no_change(client, browser):
    put_fact(client, "before", valid_from=EARLY)
    page = browser.submit(one(), "Set", value="before")
    assert "already has this value" in page
    assert "Undo" not in page


def test_a_new_fact_is_set_by_any_name(client, browser, container):
    put_fact(client, 5432)
    page = browser.submit("/w/default/facts", "Set", subject="C++ & Käse / 100%", attribute="co.lour?", value="blue")
    assert "<b>blue</b>" in page
    (item,) = [item for item in client.get("/v1/facts").get_json()["items"] if item["value"] == "blue"]
    assert "blue" in browser.page(of(item["subject"]))
    assert "blue" in browser.page(one(item["subject"], item["attribute"]))


def test_a_scoped_fact_is_another_than_the_workspace_s(client, browser):
    put_fact(client, "for all", valid_from=EARLY)
    put_fact(client, "for one", valid_from=EARLY, scope={"kind": "session", "id": "s 1/2"})
    listed = browser.page("/w/default/facts")
    assert "session s 1/2" in listed
    page = browser.page(one(scope="session:s 1/2"))
    assert "for one" in page
    assert "for all" not in page
    browser.submit_in(page, "Set", value="for one still")
    assert value(client, scope="session:s 1/2") == "for one still"
    assert value(client) == "for all"


def test_fact_page_shows_candidates_and_contradictions(client, browser, container):
    put_fact(client, 5432, valid_from=EARLY)
    container.settings.paths.workspace("default").config.write_text("review = true\n")
    put_fact(client, 9999, valid_from=MIDDLE, source="import")
    denied = client.write("The staging port was never 5432", edges=[{"kind": "contradicts", "to": _id(client)}])
    page = browser.page(one())
    assert "Waiting for review" in page
    assert "9999" in page.partition("Waiting for review")[2]
    assert f"/memories/{denied}" in page.partition("Contradicted by")[2]


def test_page_of_an_unknown_fact_is_not_found(client, browser):
    put_fact(client, 5432)
    assert browser.get(of("nobody")).status_code == 404
    assert browser.get(one("staging", "nothing")).status_code == 404
    assert browser.get("/w/default/facts/one?subject=staging").status_code == 422
    assert browser.get(one(as_of="soon")).status_code == 422


def test_fact_values_are_escaped_on_pages(client, browser):
    scope = {"kind": "session", "id": "a&b<c>\"'"}
    put_fact(client, "<script>alert(1)</script> & " + "x" * 1900, scope=scope)
    pages = browser.page("/w/default/facts"), browser.page(of("staging")), browser.page(one(scope="session:a&b<c>\"'"))
    for page in pages:
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; xxx" in page
    page = browser.submit_in(pages[2], "Set", value="another")
    assert "<b>another</b>" in page


def test_before_anything_is_known_it_says_how_to_begin(client, browser):
    client.write("No fact at all")
    assert "reverie facts set" in browser.page("/w/default/facts")


def test_a_change_that_was_not_asked_for_here_is_refused(client, browser):
    fact = put_fact(client, 5432, valid_from=EARLY)
    for path, fields in (("value", {**_key(), "value": "1"}), ("end", _key()), ("take-back", {"fact_id": fact})):
        assert browser.post(f"/w/default/facts/{path}", {**fields, "csrf": "forged"}).status_code == 403
    assert spans(client) == [(5432, EARLY, None)]


def test_a_page_of_keys_goes_on_where_the_last_one_ended(client, container):
    put_fact(client, 1, attribute="b")
    put_fact(client, 1, attribute="a", scope={"kind": "user"})
    put_fact(client, 1, attribute="a")
    put_fact(client, 2, attribute="a", valid_from=FUTURE)
    with container.databases.get("default").read() as db:
        everything = facts.page_keys(db, "staging", 9, None)
        assert [(one.key.attribute, one.scope.kind) for one in everything] == [
            ("a", "user"),
            ("a", "workspace"),
            ("b", "workspace"),
        ]
        for number, last in enumerate(everything):
            assert facts.page_keys(db, "staging", 9, last.seq) == everything[number + 1 :]
        assert facts.find_valid(db, FactKey("staging", "a"), Scope(), FUTURE).details["value"] == 2


def _key():
    return {"subject": "staging", "attribute": "port"}


def _id(client):
    return client.get("/v1/facts/staging/port").get_json()["id"]


@pytest.mark.parametrize("others", [True, False])
def test_undo_of_a_first_fact_value_redirects_to_an_existing_page(client, browser, others):
    if others:
        put_fact(client, "db-stage.example", attribute="host")
    client.write("No fact at all")
    page = browser.submit("/w/default/facts", "Set", subject="staging", attribute="port", value="5432")
    assert browser._at.startswith("/w/default/facts/one?")
    page = browser.submit_in(page, "Undo")
    assert "The value of port of staging was removed." in page
    assert browser._at == (of("staging") if others else "/w/default/facts")
    assert value(client) is None
