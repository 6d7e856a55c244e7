"""Another Reverie, by its change log: `GET` and `POST /v1/changes`, workspace by workspace.

Who shows the circle's token is a member; what travels is kept to both ends by TLS, or never leaves this machine.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from pipeline.errors import PeerRefused, RemoteUnreachable
from pipeline.store.peers import Peers, Remote, Stream
from pipeline.sync.circle import Circle
from pipeline.sync.remotes.remote import Item, Outgoing, Stretch

TIMEOUT_S = 30.0
PAGE = 500
# A server takes no larger body than 8 MiB.
PAGE_BYTES = 4 * 1024 * 1024
WORKSPACE_HEADER = "X-Reverie-Workspace"


@dataclass(frozen=True)
class HttpRemote:
    """A remote that is another Reverie's server."""

    remote: Remote
    peers: Peers

    @property
    def _circle(self) -> Circle:
        return Circle(self.peers)

    def meet(self) -> None:
        """Tell the server whom this device knows, and learn whom the server does."""
        circle = self._circle
        body = {"cards": circle.cards(), "notices": self.peers.notices()}
        # A server that has not heard of the newest key yet takes an older one's token, and learns it.
        told = self._ask("POST", "/v1/devices", tokens=circle.tokens, json=body)
        circle.heed(str(one) for one in told["notices"])
        self._circle.meet(told["cards"])

    def receive(self) -> Iterator[Stretch]:
        """Go through what the server logged since the last time."""
        for workspace in self._ask("POST", "/v1/devices", json={"cards": [], "notices": []})["workspaces"]:
            while True:
                # Where one workspace's log is read stands where a node's stream would.
                known = self.peers.received(self.remote.name).get(workspace, [])
                cursor = known[0][1] if known else 0
                page = self._ask("GET", "/v1/changes", workspace, params={"after": str(cursor), "limit": str(PAGE)})
                items: list[Item] = page["items"]
                if not items:
                    break
                last = int(items[-1]["cursor"])
                self._circle.meet(page.get("cards", []))
                yield Stretch(workspace, cursor + 1, last, items)
                self.peers.note_received(self.remote.name, workspace, 1, last)

    def send(self, outgoing: Outgoing) -> int:
        """Hand operations to the server; what it puts aside is put aside there."""
        sent = 0
        circle = self._circle
        for workspace in sorted({str(item["workspace"]) for item in outgoing.items}):
            for items in _pages([item for item in outgoing.items if item["workspace"] == workspace]):
                answer = self._ask("POST", "/v1/changes", workspace, json={"items": items, "cards": circle.cards()})
                for refused in answer["put_aside"]:
                    raise PeerRefused(f"{self.remote.url} puts aside what it is sent: {refused['reason']}")
                sent += sum(len(str(item)) for item in items)
        node = circle.identity.node
        last = self.peers.stream(self.remote.name, node).last + len(outgoing.items)
        self.peers.note_sent(self.remote.name, node, Stream(last), outgoing.workspaces)
        return sent

    def needs_tidying(self, purges: int) -> bool:  # noqa: ARG002 - the server's own log follows its own purges
        """Tell that nothing has to be written anew."""
        return False

    def tidy(self, outgoing: Outgoing) -> int:  # noqa: ARG002 - as above
        """Write nothing anew."""
        return 0

    def size(self) -> int:
        """Return 0: what the other keeps is in its own files."""
        return 0

    def _ask(
        self, method: str, path: str, workspace: str | None = None, tokens: Sequence[str] = (), **rest: Any
    ) -> Mapping[str, Any]:
        headers = {} if workspace is None else {WORKSPACE_HEADER: workspace}
        url = f"{self.remote.url}{path}"
        try:
            for token in tokens or self._circle.tokens[:1]:
                shown = {**headers, "Authorization": f"Bearer {token}"}
                answer = httpx.request(method, url, headers=shown, timeout=TIMEOUT_S, **rest)
                if answer.status_code != httpx.codes.UNAUTHORIZED:
                    break
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise PeerRefused(f"{self.remote.url} is not of this circle: join with the code that its machine shows")
            answer.raise_for_status()
            return dict(answer.json())
        except (httpx.HTTPError, ValueError) as error:
            raise RemoteUnreachable(f"{self.remote.url} does not answer: {str(error)[:300]}") from error


def _pages(items: Sequence[Item]) -> Iterator[list[Item]]:
    page: list[Item] = []
    size = 0
    for item in items:
        if page and (len(page) == PAGE or size > PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(item)
        size += len(json.dumps(item, ensure_ascii=False))
    yield page
