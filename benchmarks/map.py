"""Measure the map: how long its job takes to draw it, how soon it opens, and at how many frames a second it moves.

Run by `make bench-map`, on a workspace whose graph has at least 4,000 entities and 40,000 ties. Chromium runs without a
graphics card, and shares the processors with the server.
"""

import argparse
import contextlib
import logging
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.figures import Aim, Latency, Limit, Report, latency
from pipeline.features.map import store as maps
from pipeline.features.map.job import layout
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.store.database import Database
from tests.browser.chromium import find_chromium
from tests.fakes.dashboard import Site, serve_containers, sign_in
from tests.fakes.in_process import fast_settings, open_web, open_worker
from tests.fakes.multitude import fill

MEMORIES = 30_000
ENTITIES, TIES = 4_000, 40_000
OPENINGS, REQUESTS = 7, 15
MOVES_S = 4.0
# What a job may find changed: so much of what was written is put away.
PUT_AWAY = 0.03
FRAME_MS = 1000 / 60

WATCH = """() => {
  const frames = []; let last;
  const step = (now) => {
    if (last !== undefined) frames.push(now - last);
    last = now;
    if (!frames.done) requestAnimationFrame(step);
  };
  window.watched = frames;
  requestAnimationFrame(step);
}"""
READ = "() => { window.watched.done = true; return window.watched.slice(2); }"
# One step of the pointer a frame, to and fro, so that nothing but the map limits the frames.
DRAG = """([ms, step]) => new Promise((done) => {
  const stage = document.querySelector("[data-stage]"), box = stage.getBoundingClientRect();
  stage.setPointerCapture = () => {};
  let x = box.width / 2, y = box.height / 2, way = 1, number = 0;
  const send = (type) => stage.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, button: 0, clientX: box.left + x, clientY: box.top + y, bubbles: true }));
  const began = performance.now();
  const go = () => {
    if (++number % 60 === 0) way = -way;
    x += step * way; y += step * 0.4 * way; send("pointermove");
    if (performance.now() - began < ms) requestAnimationFrame(go); else { send("pointerup"); done(); }
  };
  send("pointerdown"); requestAnimationFrame(go);
})"""
OPENED = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const [data] = performance.getEntriesByName(location.origin + document.querySelector("[data-map]").dataset.source);
  const [shown] = performance.getEntriesByName("map:shown");
  return { page: page.responseEnd, data: data.responseEnd, shown: shown.startTime };
}"""


def main() -> None:
    """Print the figures, and write them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    report = Report()
    with workspace(given.memories) as site:
        measure_job(site.container.databases.get("default"), report)
        measure_server(site, report)
        measure_browser(site, report)
    report.write(given.json)


@contextlib.contextmanager
def workspace(memories: int) -> Iterator[Site]:
    """Serve a workspace of so many memories."""
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as home:
        settings = fast_settings(Path(home))
        container = open_web(settings)
        fill(container.databases.get("default", create=True), memories)
        with serve_containers(container, open_worker(settings)) as site:
            yield site


def measure_job(database: Database, report: Report) -> None:
    """Draw the map from nothing, and again after some memories were put away."""
    report.section("The layout job draws the map")
    cold = _run_layout(database)
    with database.read() as db:
        before = {place.entity_seq: place for place in maps.list_positions(db)}
        began = time.process_time()
        ties = len(maps.list_ties(db))
        reading = Limit("reading the ties, s", time.process_time() - began)
    report.row("entities", f"{len(before):,}", (Aim("", ENTITIES, at_least=True), len(before)))
    report.row("ties", f"{ties:,}", (Aim("", TIES, at_least=True), ties))
    report.row("from nothing, CPU", f"{cold:.1f} s", (Aim("", 60), cold), against=(reading, cold))
    with database.write() as db:
        db.execute("UPDATE memory SET archived_at = updated_at WHERE seq % ? = 0", (round(1 / PUT_AWAY),))
    warm = _run_layout(database)
    with database.read() as db:
        now = {place.entity_seq: place for place in maps.list_positions(db)}
    both = [(before[seq], now[seq]) for seq in before if seq in now]
    moved = np.array([np.hypot(new.x - old.x, new.y - old.y) for old, new in both])
    width = np.ptp([place.x for place in now.values()])
    kept = float(np.mean([old.community == new.community for old, new in both]))
    report.row("after a few changes, CPU", f"{warm:.1f} s", (Aim("", 60), warm), against=(reading, warm))
    middle, far = (float(np.quantile(moved, share)) / float(width) for share in (0.5, 0.95))
    report.row("  moved, median and p95, in widths of the map", f"{middle:.4f}  {far:.4f}")
    report.row("  in the community as before", f"{kept:.3f}")
    report.keep("night", "size", value={"entities": len(now), "ties": ties})
    report.keep("night", "cpu_s", value={"cold": cold, "warm": warm})
    report.keep("night", "stays", value={"moved_p50": middle, "moved_p95": far, "community": kept})


def _run_layout(database: Database) -> float:
    began = time.process_time()
    outcome = layout(JobRun(database, datetime.now(UTC)))
    assert outcome.counts["redrawn"], outcome
    return time.process_time() - began


def measure_server(site: Site, report: Report) -> None:
    """Ask for the page and for its data."""
    report.section("The server")
    browser = sign_in(site.client)
    limit = Limit("an empty request", _time_page(browser, "/healthz")[0].p50)
    for name in ("/map", "/map/data", "/entities"):
        found, size = _time_page(browser, f"/w/default{name}")
        report.latency(f"{name}, {size / 1000:.0f} KB", found, limit, p50=200)
        report.keep("server", name, value=found)


def _time_page(browser: Any, path: str) -> tuple[Latency, int]:
    times, size = [], 0
    for _ in range(REQUESTS):
        began = time.perf_counter()
        answer = browser.get(path)
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200
        size = len(answer.data)
    return latency(times), size


def measure_browser(site: Site, report: Report) -> None:
    """Open the map several times, then move it."""
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, base_url=site.url)
        page.goto(site.link())
        _measure_opening(page, report)
        _measure_moving(page, report)
        browser.close()


def _measure_opening(page: Page, report: Report) -> None:
    report.section("Opening, from the click to the map, in Chromium without a graphics card")
    found: dict[str, list[float]] = {"page": [], "data": [], "shown": []}
    for _ in range(OPENINGS):
        page.goto("/w/default/goals")
        page.goto("/w/default/map")
        page.locator("[data-painted]").wait_for(state="attached")
        for name, value in page.evaluate(OPENED).items():
            found[name].append(value)
    titles = {"page": "the page is there", "data": "the data are there", "shown": "the map is shown"}
    page_there = Limit("the page alone", latency(found["page"]).p50)
    for name, values in found.items():
        bounds = {"p50": 1000.0} if name == "shown" else {}
        report.latency(titles[name], latency(values), None if name == "page" else page_there, **bounds)
        report.keep("opening", name, value=latency(values))


def _measure_moving(page: Page, report: Report) -> None:
    report.section("Frames while it is moved")
    still = _measure_frames("nothing happens", page, report, lambda: page.wait_for_timeout(2000))
    limit = Limit("a frame of a map at rest", still.p50)
    drag = [MOVES_S * 1000, 6]
    _measure_frames("dragged, all of it in view", page, report, lambda: page.evaluate(DRAG, drag), limit)
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(1000)
    _measure_frames("dragged, nearer", page, report, lambda: page.evaluate(DRAG, drag), limit)
    fast = [MOVES_S * 1000, 16]
    _measure_frames("dragged, nearer and fast", page, report, lambda: page.evaluate(DRAG, fast), limit)


def _measure_frames(name: str, page: Page, report: Report, act: Any, limit: Limit | None = None) -> Latency:
    page.evaluate(WATCH)
    act()
    frames = page.evaluate(READ)
    found = latency(frames)
    rate = 1000 * len(frames) / sum(frames)
    late = sum(frame > 1.5 * FRAME_MS for frame in frames) / len(frames)
    report.row(
        name,
        f"p50 {found.p50:5.1f}  p95 {found.p95:5.1f} ms  {rate:4.1f} frames/s  {late:5.1%} late",
        (Aim("p50", 17), found.p50),
        (Aim("p95", 17), found.p95),
        against=None if limit is None else (limit, found.p50),
    )
    report.keep("frames", name, value=found)
    return found


if __name__ == "__main__":
    main()
