"""The inbox in a browser: judged by keys, gone on from, taken back."""

import pytest
import tomlkit
from playwright.sync_api import expect

from pipeline.features.review import store as review
from pipeline.kernel.records import EdgeKind
from pipeline.kernel.store import duplicates, edges, memories
from pipeline.kernel.times import utc_now

INBOX = "/w/default/inbox"


@pytest.fixture
def inbox_site(site):
    """A site with three candidates, three pairs and three contradictions."""
    site.container.settings.paths.workspace("default").config.write_text(tomlkit.dumps({"review": True}))
    for name in ("shop", "portal", "harbour"):
        site.client.post("/v1/memories", {"content": f"Deploys of the {name} wait for the tests", "source": "ambient"})
    ids = [site.client.write(f"Crane {n} {verb} on Mondays") for n in range(6) for verb in ("lifts", "rests")]
    with site.container.databases.get("default").write() as db:
        seqs = [memories.get(db, one).seq for one in ids]
        for n in range(0, 6, 2):
            duplicates.add(db, seqs[n], seqs[n + 1], 0.9, ["a word differs"], utc_now())
        for n in range(6, 12, 2):
            edges.add(db, seqs[n + 1], EdgeKind.CONTRADICTS, seqs[n], "edges-job", utc_now())
    return site


def counts(site):
    with site.container.databases.get("default").read() as db:
        found = review.count_waiting(db)
    return found.candidates, found.pairs, found.contradictions


def find_focus(page):
    """The entry that has the focus, by number."""
    return page.evaluate("[...document.querySelectorAll('.entry')].indexOf(document.activeElement)")


def press(page, key, says):
    page.keyboard.press(key)
    expect(page.get_by_role("status")).to_contain_text(says)


@pytest.mark.parametrize(
    ("kind", "yes", "no", "left"),
    [
        ("candidates", "Candidate accepted", "rejected and archived", (0, 1)),
        ("duplicates", "merged into the one", "Both memories were kept", (1, 1)),
        ("contradictions", "was archived", "Both memories were kept", (2, 1)),
    ],
)
def test_every_kind_is_judged_by_keys_and_taken_back(opened, inbox_site, kind, yes, no, left):
    page = opened(inbox_site, f"{INBOX}?kind={kind}")
    expect(page.locator(".keys")).to_be_visible()
    entries = page.locator(".entry")
    expect(entries).to_have_count(3)
    # Nothing is judged before something is looked at.
    page.keyboard.press("m")
    assert (find_focus(page), counts(inbox_site)) == (0, (3, 3, 3))
    for key, expected in (("j", 1), ("j", 2), ("j", 2), ("k", 1), ("k", 0)):
        page.keyboard.press(key)
        assert find_focus(page) == expected
    second = entries.nth(1).get_attribute("id")
    press(page, "m", yes)
    expect(entries).to_have_count(2)
    expect(page.locator(f"#{second}".replace(".", "\\."))).to_be_focused()
    press(page, "x", no)
    expect(entries).to_have_count(1)
    place, waits = left
    assert counts(inbox_site)[place] == waits
    press(page, "u", "waits for review again")
    expect(page.locator(f"#{second}".replace(".", "\\."))).to_be_focused()
    assert counts(inbox_site) == tuple(3 if n != place else 2 for n in range(3))


def test_a_merge_is_taken_back(opened, inbox_site):
    page = opened(inbox_site, f"{INBOX}?kind=duplicates")
    expect(page.locator("mark").first).to_be_visible()
    page.get_by_role("button", name="Merge").first.click()
    expect(page.get_by_role("status")).to_contain_text("merged")
    assert counts(inbox_site)[1] == 2
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry")).to_have_count(3)
    assert counts(inbox_site)[1] == 3


def test_keeping_the_older_contradiction_archives_the_newer_undoably(opened, inbox_site):
    page = opened(inbox_site, f"{INBOX}?kind=contradictions")
    page.keyboard.press("j")
    press(page, "o", "was archived")
    assert counts(inbox_site)[2] == 2
    # The audit trail lists it among the automatic changes and can undo it.
    page.get_by_role("link", name="Automatic changes").click()
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.get_by_role("button", name="Undo this change")).to_have_count(1)


def test_automatic_change_is_undone_by_keyboard(opened, site):
    older, newer = site.write([{"content": "The build runs nightly."}, {"content": "the build runs nightly"}])
    page = opened(site, f"{INBOX}?kind=done")
    page.keyboard.press("j")
    press(page, "x", "was restored")
    assert site.client.get(f"/v1/memories/{newer}").get_json()["archived_at"] is None
    expect(page.get_by_role("button", name="Undo this change")).to_have_count(0)
    assert older != newer


def test_inbox_shortcuts_are_ignored_while_typing_in_a_field(opened, inbox_site):
    page = opened(inbox_site, f"{INBOX}?kind=candidates")
    page.get_by_role("searchbox", name="Recall").fill("")
    page.keyboard.type("mxj")
    expect(page.get_by_role("searchbox", name="Recall")).to_have_value("mxj")
    assert counts(inbox_site) == (3, 3, 3)


def test_without_scripts_the_buttons_do(chromium, inbox_site):
    context = chromium.new_context(java_script_enabled=False, base_url=inbox_site.url)
    page = context.new_page()
    page.goto(inbox_site.link())
    page.goto(INBOX)
    expect(page.locator(".keys")).to_be_hidden()
    page.get_by_role("button", name="Accept").first.click()
    expect(page.get_by_role("status")).to_contain_text("Candidate accepted")
    page.get_by_role("button", name="Undo").click()
    assert counts(inbox_site) == (3, 3, 3)
    context.close()
