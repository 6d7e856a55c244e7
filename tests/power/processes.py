"""A web server and a worker of a data directory in this process, which tests start, ask and stop."""

from contextlib import ExitStack
from typing import Any

from config.settings import Settings
from pipeline.features.sync.exchange import Exchanged
from pipeline.features.sync.usecases import SyncService
from pipeline.kernel.errors import ReverieError
from tests.fakes.client import HOST
from tests.fakes.homes import SHARED
from tests.fakes.in_process import open_web, open_worker
from web.http.app import create_app

WORKSPACE = "default"
# HTTP statuses that say that a request was not carried out, and that it may be sent again.
REFUSED = (503, 507)


class Refusal(ReverieError):
    """A request that was refused with a typed answer."""


class Processes:
    """A web server and a worker; only the models are fakes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opened = ExitStack()
        self.start()

    def start(self) -> None:
        """Start both, as after a restart of the machine."""
        self.web = open_web(self.settings)
        self._opened.callback(self.web.close)
        self.client = create_app(self.web).test_client()
        self.worker = open_worker(self.settings)
        self._opened.callback(self.worker.close)

    def stop(self) -> None:
        """Close every file, as processes that end in order."""
        self._opened.close()

    def call(self, method: str, path: str, body: object = None, *, workspace: str = WORKSPACE, status: int = 0) -> Any:
        """Send a request that succeeds, or is answered with a status; raise Refusal for a typed refusal."""
        headers = {"Authorization": f"Bearer {self.web.token}", "Host": HOST, "X-Reverie-Workspace": workspace}
        answer = self.client.open(path, method=method, json=body, headers=headers)
        if answer.status_code in REFUSED and answer.mimetype == "application/problem+json":
            raise Refusal(answer.get_json()["detail"])
        is_expected = answer.status_code == status if status else answer.status_code < 300
        assert is_expected, (method, path, body, answer.status_code, answer.get_data(as_text=True)[:500])
        return answer.get_json()

    def exchange_shared(self) -> Exchanged | ReverieError:
        """Let the worker exchange by the shared remote."""
        return SyncService(self.worker.stores, self.worker.workspace_settings).now([SHARED])[SHARED]
