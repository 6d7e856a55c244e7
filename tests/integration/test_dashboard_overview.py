"""The overview: what it counts is what the API tells, and it hints at what its reader would do next."""

import html
import re
from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from pipeline.features.review.usecases import CandidateVerdict, settle_candidate
from pipeline.features.today.usecases import LISTED_IMPORTS
from pipeline.kernel.records import Stage
from pipeline.kernel.store import audit, memories, runs, work
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.times import utc_now
from pipeline.write.revise import archive_memory
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import run_job
from web.hosts import installed_files
from web.hosts.installed_files import InstalledFile


@pytest.fixture
def browser(client):
    return sign_in(client)


def overview(browser, workspace="default"):
    """Return the page as it reads, without tags."""
    page = browser.page(f"/w/{workspace}/")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main")[2])).split())


def hints(browser):
    page = browser.page("/w/default/")
    return page.partition('id="next"')[2].partition("</section>")[0]


def test_overview_counts_memories_facts_entities_and_sessions(client, browser, digested):
    for number in range(3):
        client.write(f"A fact about part number {number}", session_id="s1")
    client.write("We keep PostgreSQL for billing.py", kind="decision", session_id="s2")
    gone = client.write("A fact that goes away again")
    client.delete(f"/v1/memories/{gone}")
    client.put("/v1/facts/server/port", {"value": "8123"})
    digested()
    text = overview(browser)
    stats = client.get("/v1/stats").get_json()
    assert f"Memories {stats['memories']['active']} 1 archived" in text
    assert "Current facts 1" in text
    assert f"Entities {stats['graph']['entities']}" in text
    assert "Sessions 2" in text


def test_overview_reports_dead_letters_failed_jobs_and_errors(client, container, browser):
    client.write("The port is 8123")
    database = container.databases.get("default")
    with database.write() as db:
        db.execute("UPDATE work SET dead = 1 WHERE stage = 'embed'")
        run = runs.begin(db, "decay", utc_now(), 0)
        runs.end(db, run, utc_now(), {}, "KeyError: boom")
    container.operations.record_error("job.decay", "KeyError: boom", workspace="default")
    text = overview(browser)
    assert "Processing failed permanently for 1 queue entry." in text
    assert "decay failed" in text
    assert "Errors today 1" in text
    with database.write() as db:
        assert work.retry(db, Stage.EMBED) == 1
    assert "dead letter" not in overview(browser)


def test_hints_come_only_where_they_help(client, container, worker, browser, digested):
    client.write("The port is 8123", source="user")
    assert "No agent has used this workspace" in hints(browser)
    assert "no snapshot yet" in hints(browser)
    assert "no worker is running" in hints(browser)
    digested()
    assert "no worker is running" not in hints(browser)
    run_job(worker, "default", "snapshot")
    assert "no snapshot" not in hints(browser)
    installed_files.write_state(
        container.settings.paths.root, {"/home/ann/.claude/settings.json": InstalledFile(frozenset({"claude-code"}))}
    )
    assert hints(browser) == ""


def test_overview_links_pending_decisions_to_the_inbox(client, container, browser):
    client.write("The port is 8123")
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET candidate = 1")
    assert "1 decision waits in your inbox." in hints(browser)
    assert "Candidates 1" in overview(browser)


def test_incognito_workspace_is_announced_on_the_overview(client, container, browser):
    client.write("The port is 8123")
    container.settings.paths.workspace("default").config.write_text("incognito = true\n")
    assert "incognito" in hints(browser)


def test_numbers_follow_every_write(client, browser):
    for number in range(1, 4):
        client.write(f"Fact number {number} of many")
        assert f"Memories {number}" in overview(browser)


def test_rejected_candidate_is_no_longer_pending(client, container, browser):
    client.write("A memory that makes the workspace")
    candidate = client.write("It may be that the port is 8123")
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET candidate = 1 WHERE id = ?", (candidate,))
    assert "1 decision waits in your inbox" in overview(browser)
    settle_candidate(container.workspace("default"), candidate, CandidateVerdict.REJECT)
    assert "decision waits in your inbox" not in overview(browser)


def today(browser, workspace="default"):
    """Return the part about today as it reads, without tags."""
    page = browser.page(f"/w/{workspace}/").partition('id="today"')[2].partition('<dl class="stats">')[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", f"<h2 {page}")).split())


def test_today_lists_every_workspace_that_of_the_page_first(client, browser):
    client.write("Invoices are rounded to cents", workspace="shop")
    client.write("Posts are written in Markdown", workspace="blog")
    told = today(browser, "shop")
    assert re.match(r"Today shop Learned Invoices .* blog Learned Posts", told)
    assert re.match(r"Today blog Learned Posts .* shop Learned Invoices", today(browser, "blog"))


def test_overview_without_changes_explains_how_to_add_memories(client, container, browser):
    client.write("The importer reads CSV")
    with container.databases.get("default").write() as db:
        db.execute("DELETE FROM change")
    assert "No changes since midnight" in today(browser)
    assert "reverie remember" in today(browser)


def test_learned_changed_and_forgotten_with_their_sentences(client, browser):
    client.put("/v1/facts/sms-gateway/rate", {"value": "10 per second"})
    client.put("/v1/facts/sms-gateway/rate", {"value": "25 per second"})
    gone = client.write("A note that nobody needs")
    client.delete(f"/v1/memories/{gone}")
    secret = client.write("The flumadiddle is behind the door")
    client.delete(f"/v1/memories/{secret}?hard=true")
    client.write("Invoices are rounded to cents")
    told = today(browser)
    assert re.search(r"Learned Invoices are rounded to cents user", told)
    assert re.search(r"Changed sms gateway rate: 10 per second → sms gateway rate: 25 per second replaced", told)
    assert "Forgotten" in told
    assert "A note that nobody needs archived" in told
    assert "a memory was deleted permanently" in told
    assert "flumadiddle" not in told


def test_a_memory_is_deleted_and_brought_back_on_the_first_page(client, browser):
    client.write("Invoices are rounded to cents")
    page = browser.submit("/w/default/", "Delete")
    assert "Memory archived" in page
    assert "Forgotten Invoices are rounded to cents archived" in today(browser)
    browser.submit("/w/default/", "Undo")
    assert "Learned Invoices are rounded to cents" in today(browser)


def test_a_new_value_is_undone_on_the_first_page(client, browser):
    for value in ("10 per second", "25 per second"):
        client.put("/v1/facts/sms-gateway/rate", {"value": value})
    browser.submit("/w/default/", "Undo")
    assert client.get("/v1/facts/sms-gateway/rate").get_json()["value"] == "10 per second"


def test_an_edit_is_undone_on_the_first_page(client, container, browser):
    memory = client.write("The importer reads CSV")
    with container.databases.get("default").write() as db:
        db.execute("DELETE FROM change")
    client.patch(f"/v1/memories/{memory}", {"content": "The importer reads TSV"})
    assert "The importer reads CSV → The importer reads TSV edited" in today(browser)
    browser.submit("/w/default/", "Undo")
    assert client.get(f"/v1/memories/{memory}").get_json()["content"] == "The importer reads CSV"


def test_an_automatic_change_is_undone_on_the_first_page(client, container, browser):
    gone = client.write("A memory that is archived by a job")
    with container.databases.get("default").write() as db:
        archive_memory(db, memories.get(db, gone), utc_now())
        audit.add(db, utc_now(), "archive", AuditAction.ARCHIVE, gone, detail={"unused_days": 200})
    assert "unused for a long time" in today(browser)
    browser.submit("/w/default/", "Undo")
    assert client.get(f"/v1/memories/{gone}").get_json()["archived_at"] is None


def test_the_buttons_act_in_the_workspace_of_their_row(client, browser):
    client.write("A memory that makes the workspace")
    memory = client.write("Posts are written in Markdown", workspace="blog")
    page = browser.page("/w/default/")
    assert f"/w/blog/memories/{memory}#edit-content" in page
    assert f"/w/blog/memories/{memory}/archive" in page


def test_many_imported_memories_are_a_count_with_a_link(client, browser):
    for number in range(LISTED_IMPORTS + 1):
        client.write(f"Note number {number} of the old tool", source="import")
    page = browser.page("/w/default/")
    listed = browser.follow(page, f"{LISTED_IMPORTS + 1} imported memories")
    assert "Note number 3" in listed


def test_the_day_is_that_of_the_reader(client, container, browser):
    client.write("Invoices are rounded to cents")
    zone = timezone(timedelta(hours=14)) if datetime.now(UTC).hour < 12 else UTC
    browser.tell_zone("Pacific/Kiritimati" if zone is not UTC else "UTC")
    midnight = datetime.combine(datetime.now(zone).date(), time.min, zone)
    with container.databases.get("default").write() as db:
        db.execute("UPDATE change SET hlc = ?", (f"{int(midnight.timestamp() * 1000) - 1:014d}-000000-x",))
    assert "No changes since midnight" in today(browser)
    with container.databases.get("default").write() as db:
        db.execute("UPDATE change SET hlc = ?", (f"{int(midnight.timestamp() * 1000):014d}-000000-x",))
    assert "Invoices are rounded to cents" in today(browser)
