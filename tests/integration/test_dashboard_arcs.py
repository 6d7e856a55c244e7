"""Arcs on the dashboard."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.features.arcs import store as table
from pipeline.kernel.records import OWNER, Scope
from pipeline.kernel.times import utc_now, utc_text
from tests.fakes.canal import load_canal
from tests.fakes.dashboard import serve_site, sign_in
from web.dashboard.time_axis import axis_over
from web.dashboard.view import PAGE_SIZE
from web.features.arcs.page import BINS, course


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    with serve_site(tmp_path_factory.mktemp("arcs") / "home", load_canal()) as site:
        yield site


@pytest.fixture
def browser(sample):
    return sign_in(sample.client)


def test_arcs_are_listed_by_status(sample, browser):
    everything = sample.client.get("/v1/arcs").get_json()["items"]
    assert everything
    for status in ("active", "dormant", "closed"):
        page = browser.page(f"/w/default/arcs?status={status}")
        shown = {arc["id"] for arc in everything if f"/arcs/{arc['id']}" in page}
        assert shown == {arc["id"] for arc in everything if arc["status"] == status}


def test_an_arc_leads_to_its_members(sample, browser):
    arc = sample.client.get("/v1/arcs").get_json()["items"][0]
    page = browser.page(f"/w/default/arcs/{arc['id']}")
    places = [page.index(f"/memories/{member['id']}") for member in arc["members"]]
    assert places == sorted(places)


def test_page_of_an_unknown_arc_is_not_found(browser):
    assert browser.get("/w/default/arcs/none").status_code == 404


def test_without_an_arc_it_says_how_to_look_for_some(sample, browser):
    sample.client.write("Alone", workspace="alone")
    assert "reverie jobs run arcs" in browser.page("/w/alone/arcs")


@pytest.fixture
def arcs(client, container):
    """Arcs of given statuses over new memories, one memory a minute, the last arc the latest."""

    def make(*statuses: str, size: int = 1) -> list[str]:
        texts = [f"Step {number} of a long story" for number in range(size * len(statuses))]
        for number, text in enumerate(texts):
            client.write(text, occurred_at=f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z")
        with container.databases.get("default").write() as db:
            seqs = [seq for (seq,) in db.execute("SELECT seq FROM memory ORDER BY seq")]
            for number, status in enumerate(statuses):
                members = tuple(seqs[number * size : (number + 1) * size])
                at = f"2026-01-0{number + 1}T00:00:00.000Z"
                arc = table.Arc(f"story {number}", "", table.ArcStatus(status), Scope(), at, at, members)
                assert table.put(db, None, arc, utc_now())
        with container.databases.get("default").read() as db:
            return [arc.id for arc in table.of_scope(db, Scope())]

    return make


def order(page: str, ids: list[str]) -> list[int]:
    return sorted(
        (n for n, identity in enumerate(ids) if f"/arcs/{identity}" in page), key=lambda n: page.index(ids[n])
    )


def test_active_arcs_are_listed_first_then_the_latest(client, arcs):
    ids = arcs("active", "dormant", "active", "closed", "dormant")
    assert order(sign_in(client).page("/w/default/arcs"), ids) == [2, 0, 4, 1, 3]


def test_every_arc_is_listed_exactly_once_across_pages(client, container, arcs):
    ids = arcs("active", "dormant", "closed")
    with container.databases.get("default").read() as db:
        found = table.page(db, OWNER, None, 9, None, active_first=True)
        for number, last in enumerate(found):
            rest = table.page(db, OWNER, None, 9, last.seq, active_first=True)
            assert [arc.id for arc in rest] == [arc.id for arc in found[number + 1 :]]
    assert [arc.id for arc in found] == ids


def test_every_member_of_an_arc_is_listed_once_across_pages(client, arcs):
    (identity,) = arcs("active", size=PAGE_SIZE + 3)
    browser = sign_in(client)
    first = browser.page(f"/w/default/arcs/{identity}")
    second = browser.follow(first, "Later")
    parts = (page.partition("Memories in chronological order")[2] for page in (first, second))
    found = [step for part in parts for step in re.findall(r">Step (\d+) of", part)]
    assert [int(step) for step in found] == list(range(PAGE_SIZE + 3))
    assert 'rel="next"' not in second


def test_archived_memory_is_removed_from_its_arc(client, arcs):
    (identity,) = arcs("active", size=4)
    ids = [item["id"] for item in client.get("/v1/memories").get_json()["items"]]
    client.delete(f"/v1/memories/{ids[0]}")
    page = sign_in(client).page(f"/w/default/arcs/{identity}")
    assert [f"/memories/{one}" in page for one in ids] == [False, True, True, True]
    for one in ids[1:]:
        client.delete(f"/v1/memories/{one}")
    assert sign_in(client).get(f"/w/default/arcs/{identity}").status_code == 404


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_the_course_of_an_arc_counts_everything_and_stays_in_its_frame(seconds):
    moments = [utc_text(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)) for second in seconds]
    bins = course(axis_over(moments), moments)
    assert all(0 <= number < BINS and 0 < height <= 1 for number, height in bins)
    assert max(height for _, height in bins) == 1
    assert len({number for number, _ in bins}) == len(bins) <= len(set(moments))
