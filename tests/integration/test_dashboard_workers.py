"""The workers page: the queue, the jobs and the errors as the API tells them, and what a person does about them."""

import re

import pytest

from config.process import Role
from pipeline.features.maintenance.registry import JOBS
from pipeline.kernel.records import Stage
from pipeline.kernel.store import runs, work
from pipeline.kernel.times import utc_now
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import list_requests, run_job
from web.features.maintenance.page import LISTED, SCHEDULER

PAGE = "/w/default/workers"


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def database(client, container):
    client.write("The port is 8123")
    return container.databases.get("default")


def now(browser):
    return browser.get(f"{PAGE}/now").get_json()


def mark_dead(database, count=1):
    with database.write() as db:
        work.add(db, range(1, count + 1), [Stage.EMBED], 0.0)
        db.execute("UPDATE work SET dead = 1, error = 'RuntimeError: boom' WHERE stage = 'embed'")


def test_workers_page_shows_the_queue_of_the_api(client, database, browser):
    told, live = client.get("/v1/queue").get_json(), now(browser)
    for stage, count in told["pending"].items():
        assert live["cells"][f"pending-{stage}"] == str(count)
    assert live["pending"] == sum(told["pending"].values())
    assert live["busy"]
    assert f"{live['pending']} pending" in browser.page(PAGE)


def test_a_digested_workspace_is_at_rest(database, browser, digested):
    digested()
    assert not now(browser)["busy"]
    page = browser.page(PAGE)
    assert "empty" in page
    assert re.search(r"minute</th><td class=\"number\">1</td><td class=\"number\">1 ", page)


def test_every_job_is_shown_with_its_schedule_and_last_run(client, database, browser, worker, digested):
    digested()
    run_job(worker, "default", "segment")
    page, cells = browser.page(PAGE), now(browser)["cells"]
    for job in JOBS:
        assert f'id="job-{job.name}"' in page
        assert cells[f"state-{job.name}"]
    assert cells["state-segment"] == "done"
    assert cells["did-segment"] == "1 memory"
    assert cells["last-segment"].startswith("just now, took ")
    assert re.fullmatch(r"next in ([1-4] min|\d+ s)|next due", cells["next-segment"])
    assert (cells["state-decay"], cells["last-decay"]) == ("never ran", "")
    assert (cells["state-sweep"], cells["next-sweep"]) == ("automatic", "")


def test_a_job_is_run_now(client, container, database, worker, browser, digested):
    digested()
    page = browser.page(PAGE)
    answer = browser.post(f"{PAGE}/jobs/segment")
    assert answer.headers["Location"] == f"{PAGE}#job-segment"
    assert "The job segment is queued" in browser.page(PAGE)
    assert "is queued" not in page
    assert container.notify.sent[-1] == ("default", None)
    assert now(browser)["job_states"]["segment"] == "asked for"
    assert now(browser)["busy"]
    assert list_requests(worker) == ["segment"]
    run_job(worker, "default", "segment")
    assert now(browser)["job_states"]["segment"] == "done"
    assert not now(browser)["busy"]


def test_touches_are_written_at_once_and_no_other_job_is_known(database, browser):
    assert browser.post(f"{PAGE}/jobs/touches").status_code == 303
    assert now(browser)["job_states"]["touches"] == "done"
    assert "The job touches has run." in browser.page(PAGE)
    assert browser.post(f"{PAGE}/jobs/nothing").status_code == 404


def test_running_job_shows_its_progress_and_a_failed_job_its_error(database, browser):
    with database.write() as db:
        run = runs.begin(db, "dedup", utc_now(), 0)
        runs.note_progress(db, run, 3, 1200)
        runs.lock(db, "dedup", "anna", 0.0, 2.0**33)
        run = runs.begin(db, "lessons", utc_now(), 0)
        runs.end(db, run, utc_now(), {}, "KeyError: <b>boom</b>")
    state = now(browser)
    assert state["cells"]["state-dedup"] == "running, 3 of 1\u202f200"
    assert state["busy"]
    assert state["cells"]["error-lessons"] == "KeyError: <b>boom</b>"
    assert state["cells"]["did-lessons"] == ""
    assert "KeyError: &lt;b&gt;boom&lt;/b&gt;" in browser.page(PAGE)


def test_dead_letters_are_shown_and_retried_by_stage(container, database, browser):
    mark_dead(database)
    page = browser.page(PAGE)
    assert "The port is 8123" in page
    assert "RuntimeError: boom" in page
    assert "1 queue entry will be retried." in browser.submit(PAGE, "Retry embed (1)")
    assert container.notify.sent[-1] == ("default", None)
    with database.read() as db:
        assert (work.count_dead(db)[Stage.EMBED], work.count_pending(db)[Stage.EMBED]) == (0, 1)
    assert "fails five times" in browser.page(PAGE)


def test_all_dead_letters_are_tried_again_at_once(client, database, browser):
    mark_dead(database)
    with database.write() as db:
        db.execute("UPDATE work SET dead = 1")
        count = db.execute("SELECT count(*) FROM work").fetchone()[0]
    assert f"{count} queue entries will be retried." in browser.submit(PAGE, "Retry all")
    assert not any(client.get("/v1/queue").get_json()["dead"].values())
    assert browser.post(f"{PAGE}/retry", {"stage": "nothing"}).status_code == 422


def test_both_lists_go_on_independently(client, container, database, browser):
    for number in range(2, LISTED + 5):
        client.write(f"Memory number {number} of a long list")
    mark_dead(database, LISTED + 4)
    for number in range(LISTED + 3):
        container.operations.record_error("night", f"error number {number}.", workspace="default")
    container.operations.record_error("night", "of another one", workspace="another")
    first = browser.page(PAGE)
    assert first.count("error number") == LISTED
    assert "of another one" not in first
    assert len(re.findall("failed permanently after", first)) == LISTED
    dead_url, errors_url = (path.replace("&amp;", "&") for path in re.findall(r'rel="next" href="([^"]+)"', first))
    second = browser.page(errors_url.partition("#")[0])
    assert second.count("error number") == 3
    assert len(re.findall("failed permanently after", second)) == LISTED
    third = browser.page(dead_url.partition("#")[0])
    assert len(re.findall("failed permanently after", third)) == 4
    assert third.count("error number") == LISTED


def test_every_endpoint_that_answered_has_its_times(client, database, browser):
    client.recall("which port")
    page = browser.page(PAGE).partition('id="times"')[2]
    rows = dict(re.findall(r"<tr><td><code>([^<]+)</code></td><td class=\"number\">(\d+)</td>", page))
    assert rows["/v1/recall"] == "1"
    assert int(rows["/v1/memories"]) >= 1
    assert "/v1/jobs" not in rows


def test_tools_are_listed_with_their_times_and_their_share_of_errors(client, database, browser):
    assert "Tools appear here after an agent calls them" in browser.page(PAGE)
    for outcome in ("told", "told", "told", "failed"):
        body = {"event": "mcp:recall", "host": "codex", "took_ms": 20, "outcome": outcome}
        assert client.post("/v1/hook-runs", body).status_code == 202
    # Events of hooks are no tools.
    client.post("/v1/hook-runs", {"event": "Stop", "host": "codex", "took_ms": 20, "outcome": "told"})
    page = browser.page(PAGE).partition('id="tools"')[2]
    [row] = re.findall(r"<tr><td><code>.*?</tr>", page)
    assert re.findall(r">([^<>]+)</td>", row) == ["4", "17.5 ms", "24.2 ms", "25%"]
    assert ">recall<" in row


def test_looking_at_the_queue_does_not_count_as_use(container, database, browser):
    before = container.requested
    now(browser)
    assert container.requested == before
    browser.page(PAGE)
    assert container.requested > before


def test_idle_workers_of_a_running_stack_are_not_reported_as_missing(container, database, browser):
    role = Role(container.settings.paths.root, SCHEDULER)
    role.take()
    page = browser.page(PAGE)
    role.release()
    assert "none running" not in page
    assert "a worker process starts when there is work" in page


def test_workers_that_live_are_named(container, database, browser):
    assert "none running" in browser.page(PAGE)
    from config.process import process_owner

    container.operations.report_worker("elsewhere-long-gone:1:1.00")
    container.operations.report_worker(process_owner())
    page = browser.page(PAGE)
    assert f"process {process_owner().split(':')[-2]}, started just now" in page
