"""How long the server takes for every page of the dashboard, and how large each is, at a hundred thousand memories."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.benchmarks.figures import latency
from tests.browser.pages import LISTS
from tests.fakes.client import HOST
from tests.fakes.in_process import fast_settings, open_web, open_worker, run_job
from tests.fakes.multitude import fill
from web.app import create_app

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
        print(f"{'page':24} {'first ms':>9} {'p50 ms':>8} {'p95 ms':>8} {'KB':>7}")
        for path in (*LISTS, QUESTION):
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                answer = client.get(f"/w/default{path}", headers=headers)
                times.append((time.perf_counter() - began) * 1000)
                assert answer.status_code == 200, path
            size = len(answer.data) / 1000
            later = latency(times[1:])
            print(f"{path:24.24} {times[0]:9.1f} {later.p50:8.1f} {later.p95:8.1f} {size:7.1f}")
        container.close()
        worker.close()


if __name__ == "__main__":
    main()
