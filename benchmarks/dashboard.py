"""Measure how long the server takes for every page of the dashboard and for an empty request, and each page's size.

Run by `make bench-dashboard`. Runs in this process, at a hundred thousand memories.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from flask.testing import FlaskClient

from benchmarks.figures import Limit, Report, latency
from tests.browser.pages import LISTS
from tests.fakes.client import HOST
from tests.fakes.in_process import fast_settings, open_web, open_worker, run_job
from tests.fakes.multitude import fill
from web.http.app import create_app

ROUNDS = 15
QUESTION = "/recall?q=which+service+reads+the+key"


def main() -> None:
    """Print one line a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    count = parser.parse_args().memories
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as home:
        settings = fast_settings(Path(home))
        container, worker = open_web(settings), open_worker(settings)
        fill(container.databases.get("default", create=True), count)
        run_job(worker, "default", "segment")
        client = create_app(container).test_client()
        headers = {"Host": HOST, "Authorization": f"Bearer {container.token}"}
        report = Report()
        report.section(f"pages, {count:,} memories")
        limit = Limit("an empty request", latency(time_page(client, headers, "/healthz")[0]).p50)
        for path in (*LISTS, QUESTION):
            times, size = time_page(client, headers, f"/w/default{path}")
            later = latency(times[1:])
            figure = f"first {times[0]:7.1f}  p50 {later.p50:6.1f}  p95 {later.p95:6.1f} ms {size / 1000:7.1f} KB"
            report.row(f"{path:.40}", figure, against=(limit, later.p50))
        container.close()
        worker.close()


def time_page(client: FlaskClient, headers: Mapping[str, str], path: str) -> tuple[list[float], int]:
    """Return the milliseconds of each request for a page, and its bytes."""
    times, size = [], 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(path, headers=headers)
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, path
        size = len(answer.data)
    return times, size


if __name__ == "__main__":
    main()
