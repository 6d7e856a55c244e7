"""The overview: what it counts is what the API tells, and it hints at what its reader would do next."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.records import Stage
from pipeline.services.feedback import answer_impression
from pipeline.services.review import CandidateVerdict, settle_candidate
from pipeline.store import runs, work
from pipeline.store.impressions import Impression
from pipeline.times import utc_now, utc_text
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


def test_what_is_known_is_counted(client, browser, digested):
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
    for kind, count in stats["memories"]["by_kind"].items():
        assert re.search(rf"\b{kind.replace('_', ' ')} {count}\b", text), kind


def test_growth_is_drawn_and_told_in_numbers(client, browser):
    for day in ("2026-03-01", "2026-03-01", "2026-03-04"):
        client.write(f"It happened on {day}, as told by {len(day)} people {client}", occurred_at=f"{day}T10:00:00Z")
        client.write(f"Something else on {day} {id(day)}", occurred_at=f"{day}T11:00:00Z")
    page = browser.page("/w/default/")
    assert page.count('class="growth-new"') == 4
    cells = re.findall(r"<tr><td>([^<]+)</td><td class=\"number\">(\d+)</td><td class=\"number\">(\d+)</td></tr>", page)
    assert [label for label, _, _ in cells] == ["2026-03-04", "2026-03-03", "2026-03-02", "2026-03-01"]
    assert sum(int(count) for _, count, _ in cells) == int(cells[0][2])


def test_a_single_day_needs_no_chart(client, browser):
    client.write("The only memory of them all", occurred_at="2026-03-01T10:00:00Z")
    assert "All memories so far are from 2026-03-01: 1 memory" in overview(browser)


def test_today_tells_what_was_done_and_to_which_memory(client, browser):
    kept = client.write("The importer reads CSV files")
    client.patch(f"/v1/memories/{kept}", {"content": "The importer reads CSV and TSV files"})
    gone = client.write("A note that is not needed")
    client.delete(f"/v1/memories/{gone}")
    client.write("The importer reads CSV and TSV files")
    secret = client.write("What is purged leaves no word")
    client.delete(f"/v1/memories/{secret}?hard=true")
    text = overview(browser)
    today = text.partition("Today")[2]
    for done in ("3 written", "1 edited", "1 archived", "1 merged", "1 purged"):
        assert done in today
    assert "CSV and TSV" in today
    assert "leaves no word" not in text
    assert "a purged memory" in today


def test_open_goals_and_active_arcs_lead_to_their_pages(client, browser):
    goal = client.post("/v1/goals", {"title": "Ship the importer", "due_at": "2020-01-31T00:00:00Z"}).get_json()["id"]
    done = client.post("/v1/goals", {"title": "Write the guide", "status": "done"}).get_json()["id"]
    page = browser.page("/w/default/")
    part = page.partition('id="goals"')[2].partition("</section>")[0]
    assert f"/memories/{goal}" in part
    assert "overdue by" in part
    assert done not in part


def test_what_lessons_do_is_counted(client, container, browser):
    client.write("Never deploy on a Friday afternoon", kind="lesson")
    assert "none in 30 days" in overview(browser)
    workspace = container.workspace("default")
    now = datetime.now(UTC)
    shown = [
        Impression(f"x{n}", 1, "s1", utc_text(now - timedelta(days=days))) for n, days in enumerate((40, 1, 1, 1, 0))
    ]
    container.feedback.record_impressions(workspace, shown)
    container.feedback.submit(lambda: None).result(timeout=20)
    assert "Lessons shown 4 times in 30 days Followed not rated yet" in overview(browser)
    for number, one in enumerate(shown):
        answer_impression(workspace, container.feedback, one.id, None, followed=number < 4)
    assert "75% of rated uses: 3 followed, 1 ignored" in overview(browser)


def test_trouble_behind_the_front_is_told(client, container, browser):
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


def test_what_waits_for_a_decision_leads_to_the_inbox(client, container, browser):
    client.write("The port is 8123")
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET candidate = 1")
    assert "1 decision waits in your inbox." in hints(browser)
    assert "Candidates 1" in overview(browser)


def test_an_incognito_workspace_says_so(client, container, browser):
    client.write("The port is 8123")
    container.settings.paths.workspace("default").config.write_text("incognito = true\n")
    assert "incognito" in hints(browser)


def test_numbers_follow_every_write(client, browser):
    for number in range(1, 4):
        client.write(f"Fact number {number} of many")
        assert f"Memories {number}" in overview(browser)


@pytest.mark.parametrize("hours", [-48, 0, 72])
def test_a_goal_is_due_in_the_words_of_the_page_of_goals(client, browser, hours):
    due = utc_text(datetime.now(UTC).replace(hour=0, minute=0, second=0) + timedelta(hours=hours))
    client.post("/v1/goals", {"title": "Ship the importer", "due_at": due})

    def find_due(path):
        return re.search(r'<span( class="bad")?><time datetime="([^"]+)">([^<]*due[^<]*)</time>', browser.page(path))

    on_goals, on_overview = find_due("/w/default/goals"), find_due("/w/default/")
    assert on_overview.groups() == on_goals.groups()
    assert (on_overview[1] is not None) == (hours < 0)


def test_a_candidate_that_is_turned_away_waits_no_more(client, container, browser):
    client.write("A memory that makes the workspace")
    candidate = client.write("It may be that the port is 8123")
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET candidate = 1 WHERE id = ?", (candidate,))
    assert "1 decision waits in your inbox" in overview(browser)
    settle_candidate(container.workspace("default"), candidate, CandidateVerdict.REJECT)
    assert "decision waits in your inbox" not in overview(browser)
