"""A served dashboard over a digested workspace; only the models are fakes."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from werkzeug.serving import make_server

from pipeline.bootstrap.web import WebContainer
from pipeline.bootstrap.worker import WorkerContainer
from tests.fakes.client import HOST, CheckedClient
from tests.fakes.in_process import digest_all, fast_settings, open_web, open_worker, run_job
from web.dashboard.filters import COOKIE
from web.http.app import create_app

# A fact that changed, beside the history.
FACT = "/v1/facts/staging-database/port"
FACT_HISTORY = ((5433, "2026-01-27T09:00:00Z"), (6543, "2026-09-02T14:00:00Z"))
# What nightly jobs make of a history before anybody looks at it.
NIGHTLY_JOBS = ("arcs", "edges", "layout", "segment")


@dataclass(frozen=True)
class Site:
    """A dashboard in a thread: its address, its services, and a client with the token."""

    url: str
    container: WebContainer
    worker: WorkerContainer
    client: CheckedClient

    def link(self) -> str:
        """Return a one-time link."""
        made = self.client.post("/v1/dashboard/links").get_json()
        return f"{self.url}{made['url'].partition('7077')[2]}"

    def write(self, memories: Sequence[Mapping[str, Any]], workspace: str = "default") -> list[str]:
        """Store memories, digest them, and return their ids."""
        ids = []
        for start in range(0, len(memories), 500):
            body = {"items": list(memories[start : start + 500])}
            answer = self.client.post("/v1/memories/batch", body, workspace=workspace)
            assert answer.status_code == 200, answer.get_data(as_text=True)
            ids += [result["id"] for result in answer.get_json()["results"]]
        digest_all(self.worker, workspace)
        return ids

    def tell_fact(self) -> None:
        """Let the port of the staging database change."""
        for value, since in FACT_HISTORY:
            answer = self.client.put(FACT, {"value": value, "valid_from": since})
            assert answer.status_code == 200
        digest_all(self.worker)

    def sleep(self, *jobs: str, workspace: str = "default") -> None:
        """Run jobs to their end."""
        for job in jobs:
            outcome = run_job(self.worker, workspace, job)
            assert outcome is not None, job


@contextlib.contextmanager
def serve_site(home: Path, history: Sequence[Mapping[str, Any]] = ()) -> Iterator[Site]:
    """Serve a dashboard over a history during a block."""
    settings = fast_settings(home)
    with serve_containers(open_web(settings), open_worker(settings)) as site:
        if history:
            site.write(history)
            site.sleep(*NIGHTLY_JOBS)
        yield site


@contextlib.contextmanager
def serve_containers(container: WebContainer, worker: WorkerContainer) -> Iterator[Site]:
    """Serve the dashboard of a web server during a block, and close both services."""
    app = create_app(container)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    site = Site(f"http://127.0.0.1:{server.server_port}", container, worker, CheckedClient(app, container.token))
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        container.close()
        worker.close()


class SignedIn:
    """A browser without scripts: follows links and submits forms as they stand on a page."""

    def __init__(self, client: CheckedClient) -> None:
        self._browser = client.browser()
        self._at = "/"
        made = client.post("/v1/dashboard/links").get_json()
        assert self.get(made["url"].partition("7077")[2]).status_code == 303

    def tell_zone(self, name: str) -> None:
        """Say which time zone the reader is in, as the script of every page does."""
        self._browser.set_cookie(COOKIE, name, domain=HOST.partition(":")[0])

    def get(self, path: str) -> Any:
        return self._browser.get(path, headers={"Host": HOST})

    def page(self, path: str) -> str:
        """Return a page that must be there."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        self._at = path
        return str(answer.get_data(as_text=True))

    def follow(self, page: str, text: str) -> str:
        """Follow the first link with a text."""
        (path,) = [link["href"] for link in _Forms.read(page).links if link["text"] == text][:1]
        return self.page(path)

    def post(self, path: str, fields: Mapping[str, str] | None = None) -> Any:
        """Send a form with this browser's token from the page that it looks at."""
        came_from = self._at
        csrf = _Forms.read(self.page("/w/default/goals")).csrf
        headers = {"Host": HOST, "Referer": f"http://{HOST}{came_from}"}
        return self._browser.post(path, data={"csrf": csrf, **(fields or {})}, headers=headers)

    def submit(self, path: str, button: str, **fields: str) -> str:
        """Open a page, submit its first form with this button, and return the page that follows."""
        return self.submit_in(self.page(path), button, **fields)

    def submit_in(self, page: str, button: str, **fields: str) -> str:
        """Submit the first form with this button on a page, and return the page that follows."""
        form = next(form for form in _Forms.read(page).forms if button in form.buttons)
        answer = self.post(form.action, {**form.fields, **fields})
        assert answer.status_code == 303, answer.get_data(as_text=True)
        return self.page(answer.headers["Location"])


def sign_in(client: CheckedClient) -> SignedIn:
    """Return a browser that followed a link."""
    return SignedIn(client)


@dataclass
class _Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[str] = field(default_factory=list)


class _Forms(HTMLParser):
    """The forms and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self.links: list[dict[str, str]] = []
        self.csrf = ""
        self._texts: list[str] | None = None

    @classmethod
    def read(cls, page: str) -> "_Forms":
        found = cls()
        found.feed(page)
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(_Form(values.get("action", "")))
        elif tag == "input" and values.get("type") == "hidden" and self.forms:
            self.forms[-1].fields[values["name"]] = values.get("value", "")
            if values["name"] == "csrf":
                self.csrf = values["value"]
        elif tag in ("a", "button"):
            self._texts = []
            if tag == "a":
                self.links.append({"href": values.get("href", ""), "text": ""})

    def handle_data(self, data: str) -> None:
        if self._texts is not None:
            self._texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("a", "button") and self._texts is not None:
            text = " ".join("".join(self._texts).split())
            if tag == "a":
                self.links[-1]["text"] = text
            elif self.forms:
                self.forms[-1].buttons.append(text)
            self._texts = None
