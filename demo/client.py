from collections.abc import Mapping, Sequence
from typing import Any

import urllib3

from demo.errors import DemoFailed

REQUEST_TIMEOUT_S = 30.0
# A refused write (429, 503) has written nothing, so it may be sent again; a lost answer may have.
RETRIES = urllib3.Retry(
    connect=2,
    read=0,
    other=0,
    status=5,
    status_forcelist=(429, 503),
    allowed_methods=None,
    backoff_factor=0.2,
    raise_on_status=False,
)


class Client:
    """The routes of one workspace that the demonstration needs in addition to commands."""

    def __init__(self, base_url: str, token: str, workspace: str) -> None:
        self.base_url = base_url
        self._pool = urllib3.PoolManager(
            headers={"Authorization": f"Bearer {token}", "X-Reverie-Workspace": workspace},
            timeout=urllib3.Timeout(total=REQUEST_TIMEOUT_S),
            retries=RETRIES,
        )

    def write_batch(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Write memories in one transaction and return their receipts, in order."""
        receipts: list[dict[str, Any]] = self._call("POST", "/v1/memories/batch", {"items": list(items)})["results"]
        if len(receipts) != len(items):
            raise DemoFailed(f"{len(items)} memories were sent and {len(receipts)} receipts came back")
        return receipts

    def memory(self, memory_id: str) -> dict[str, Any]:
        """Return one memory as it is stored."""
        stored: dict[str, Any] = self._call("GET", f"/v1/memories/{memory_id}")
        return stored

    def queue(self) -> dict[str, Any]:
        """Return the pending work and the dead letters."""
        state: dict[str, Any] = self._call("GET", "/v1/queue")
        return state

    def is_encoder_cold(self) -> bool:
        """Return whether the server has not loaded the query encoder yet."""
        answer = self._call("POST", "/v1/recall", {"query": "deploy", "k": 1})
        return bool(answer["channels"]["dense"]["state"] == "cold")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            response = self._pool.request(method, self.base_url + path, json=body)
        except urllib3.exceptions.HTTPError as error:
            raise DemoFailed(f"{method} {path} got no answer: {error}") from error
        if not 200 <= response.status < 300:
            problem = response.data.decode("utf-8", "replace")[:500]
            raise DemoFailed(f"{method} {path} answered {response.status}: {problem}")
        try:
            return response.json()
        except ValueError as error:
            raise DemoFailed(f"{method} {path} answered something that is not JSON") from error


def is_healthy(base_url: str) -> bool:
    """Tell whether a server answers its health check; one that does not answer yet is not healthy."""
    try:
        with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(total=2.0)) as pool:
            return pool.request("GET", f"{base_url}/healthz").status == 200
    except urllib3.exceptions.HTTPError:
        return False
