"""The recall lab: what it shows is what recall answers, and looking changes nothing."""

import re
from urllib.parse import urlencode

import pytest

from pipeline.features.predictions import store as predictions
from pipeline.features.predictions.store import Prediction, Reason
from pipeline.kernel.records import Filter
from pipeline.kernel.records.recall import Query
from pipeline.kernel.times import utc_now
from pipeline.recall.search import search_uncached
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import fit_intents

ZEBRAS = ("zebra crossing north", "zebra stable south", "zebra stripes are unique")


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def memory_ids(client, digested):
    ids = [client.write(text, session_id=f"s{number}") for number, text in enumerate(ZEBRAS)]
    digested()
    return ids


def lab(**query):
    return f"/w/default/recall?{urlencode(query, doseq=True)}"


def list_found(page, trial="A"):
    """Return the ids that a list of results shows, in their order."""
    part = page.partition(f'id="trial-{trial}"')[2].partition("</section>")[0]
    return re.findall(r'data-memory="(\w+)"', part)


def moves(page):
    part = page.partition('id="trial-B"')[2].partition("</section>")[0]
    return re.findall(r'<span class="move[^>]*><span aria-hidden="true">([^<]+)<', part)


def test_recall_page_shows_the_results_of_recall(client, browser, memory_ids):
    answer = client.recall("unique zebra stripes", explain=True)["results"]
    page = browser.page(lab(q="unique zebra stripes"))
    assert list_found(page) == [hit["id"] for hit in answer]
    for hit in answer:
        assert f"score {hit['score']:.3f}" in page
        for channel in hit["signals"]["channels"].values():
            assert f'<td class="number">{channel["contribution"]:.3f}</td>' in page
    assert "lexical ok, dense ok" in page


def test_a_channel_alone_is_asked_and_the_others_are_off(browser, memory_ids):
    words = browser.page(lab(q="zebra", only="lexical"))
    assert "lexical ok, dense off" in words
    assert "meaning 0." not in words.partition('id="trial-A"')[2]
    meaning = browser.page(lab(q="zebra", only="dense"))
    assert "lexical off, dense ok" in meaning
    assert "words 0." not in meaning.partition('id="trial-A"')[2]


def test_compared_recalls_show_rank_changes(client, browser, digested):
    first = client.write("the otter asked about rivers", kind="fact", occurred_at="2026-01-01T00:00:00Z")
    second = client.write("the otter asked about rivers and streams", kind="decision")
    digested()
    page = browser.page(lab(q="otter rivers", compare=1, b_kinds=["decision"]))
    assert set(list_found(page, "A")) == {first, second}
    assert list_found(page, "B") == [second]
    assert "0 new, 1 gone" in page
    rise = list_found(page, "A").index(second)
    assert moves(page) == ["=" if rise == 0 else f"↑{rise}"]
    worker = browser.page(lab(q="otter rivers", compare=1, kinds=["decision", "lesson"]))
    assert list_found(worker, "A") == [second]
    assert sorted(moves(worker)) == sorted(["new", "=" if list_found(worker, "B")[0] == second else "↓1"])


def test_a_comparison_begins_with_equal_settings(browser, memory_ids):
    page = browser.page(lab(q="zebra", k=2, only="lexical", kinds=["fact", "lesson"]))
    compared = browser.follow(page, "Compare with other settings")
    assert list_found(compared, "A") == list_found(compared, "B") == list_found(page)
    assert moves(compared) == ["=", "="]


@pytest.mark.parametrize(
    "setting",
    [
        {"kinds": ["decision"]},
        {"since": "2126-01-01T00:00"},
        {"until": "2000-01-01"},
        {"as_of": "2000-01-01T00:00"},
        {"session": "another"},
    ],
)
def test_a_setting_that_leaves_everything_out_leaves_everything_out(browser, memory_ids, setting):
    page = browser.page(lab(q="zebra", **setting))
    assert list_found(page) == []
    assert "No results." in page


def test_k_and_session_are_heeded(browser, memory_ids):
    assert len(list_found(browser.page(lab(q="zebra", k=2)))) == 2
    assert list_found(browser.page(lab(q="zebra", session="s1"))) == [memory_ids[1]]


def test_why_not_one_that_an_id_names(client, browser, memory_ids, digested):
    other = client.write("nothing of the kind", kind="decision")
    client.delete(f"/v1/memories/{memory_ids[0]}")
    digested()
    assert "archived at" in browser.page(lab(q="zebra", why=memory_ids[0]))
    assert "filtered by kinds: it is a decision" in browser.page(lab(q="zebra", why=other, kinds=["fact"]))
    page = browser.page(lab(q="zebra", why=memory_ids[1].lower(), compare=1, b_only="dense"))
    assert page.count("found: number") == 2
    assert browser.get(lab(q="zebra", why="01J00000000000000000000000")).status_code == 404


def test_why_not_one_that_words_find(browser, memory_ids):
    page = browser.page(lab(q="unique", why="stable south", k=1))
    assert "Matching memories" in page
    asked = browser.follow(page, "Explain")
    assert "Explanation for one memory" in asked
    assert f"/memories/{memory_ids[1]}" in asked.partition("Explanation for one memory")[2].partition("</section>")[0]


def test_recall_page_shows_session_memories_to_the_owner(client, browser, digested):
    owned = client.write("a zebra of one session", scope={"kind": "session", "id": "s1"})
    digested()
    assert client.find_ids("zebra") == []
    assert list_found(browser.page(lab(q="zebra"))) == [owned]


def test_looking_changes_nothing(client, browser, container, memory_ids):
    container.feedback.flush_usage(container.workspace("default"))

    def dump():
        container.feedback.flush_usage(container.workspace("default"))
        with container.databases.get("default").read() as db:
            return list(db.iterdump())

    kept = dict(container.contexts.get(container.workspace("default")).answers._kept)
    before = dump()
    for query in ({"q": "zebra"}, {"q": "zebra", "compare": 1, "why": memory_ids[0]}, {"q": "unique", "why": "stable"}):
        browser.page(lab(**query))
    assert dump() == before
    assert container.contexts.get(container.workspace("default")).answers._kept == kept
    assert container.feedback.write_usage(container.workspace("default"))
    assert [client.get(f"/v1/memories/{identity}").get_json()["recall_count"] for identity in memory_ids] == [0, 0, 0]


def test_recall_page_bypasses_the_query_cache(container, memory_ids):
    fit_intents(container)
    reader = container.contexts.get(container.workspace("default"))
    query = Query("zebra", filter=Filter(), budget_ms=5000)
    asked = []
    encoder = reader.dense("hash").encoder
    encode = encoder.encode_query
    encoder.encode_query = lambda text: asked.append(text) or encode(text)
    answers = [search_uncached(reader, query) for _ in range(2)]
    assert asked == ["zebra", "zebra"]
    assert [hit.memory.id for hit in answers[0].hits] == [hit.memory.id for hit in answers[1].hits]


@pytest.mark.parametrize("query", [{"k": 0}, {"k": 999}, {"only": "graphs"}, {"since": "soon"}, {"kinds": ["x"]}])
def test_invalid_recall_page_settings_are_rejected(browser, memory_ids, query):
    assert browser.get(lab(q="zebra", **query)).status_code == 422


def test_query_and_results_are_escaped_on_the_recall_page(client, browser, digested):
    client.write('<img src=x onerror="alert(1)"> ' + "w" * 9000)
    digested()
    page = browser.page(lab(q='"><script>alert(1)</script> img', why="<b>"))
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert list_found(page)


def test_predicted_question_can_be_searched(browser, container, memory_ids):
    with container.databases.get("default").write() as db:
        predictions.replace(db, [Prediction("where is the zebra & stable?", Reason.REPEATED)], utc_now())
    page = browser.follow(browser.page(lab()), "where is the zebra & stable?")
    assert list_found(page)[0] == memory_ids[1]


def test_recall_page_without_a_query_shows_its_explanation(browser, memory_ids):
    page = browser.page(lab())
    assert "Searches on this page are not recorded" in page
    assert browser.page(lab(q="   ")).count("Searches on this page are not recorded") == 1
