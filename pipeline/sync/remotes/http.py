"""Another Reverie, by its change log: `GET` and `POST /v1/changes`, workspace by workspace.

Who shows the circle's token is a member; what travels is kept to both ends by TLS, or never leaves this machine.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from config.paths import WORKSPACE_HEADER
from pipeline.errors import PeerRefused, RemoteUnreachable
from pipeline.store.peers import Numbered, Peers, Remote, Stream
from pipeline.sync.circle import Circle
from pipeline.sync.remotes.remote import Item, Outgoing, Sent, Stretch
from pipeline.sync.signed import cards_of, with_cards

TIMEOUT_S = 30.0
PAGE = 500
# A server takes no larger body than 8 MiB.
PAGE_BYTES = 4 * 1024 * 1024

_Page = list[tuple[Numbered, Item]]


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
        received = self.peers.received(self.remote.name)
        for workspace in self._list_workspaces():
            # Where one workspace's log is read stands where a node's stream would.
            known, cursor = received.get(workspace, []), 0
            while True:
                cursor = next((last for first, last in known if first <= cursor + 1 <= last), cursor)
                page = self._ask("GET", "/v1/changes", workspace, params={"after": str(cursor), "limit": str(PAGE)})
                items: list[Item] = page["items"]
                if not items:
                    break
                last = int(items[-1]["cursor"])
                self._circle.meet(cards_of(items))
                yield Stretch(workspace, cursor + 1, last, items)
                cursor = last

    def _list_workspaces(self) -> list[str]:
        told = self._ask("POST", "/v1/devices", json={"cards": [], "notices": []})
        wanted = self.remote.workspaces
        return [str(one) for one in told["workspaces"] if not wanted or one in wanted]

    def note_read(self, stretch: Stretch) -> None:
        """Note that a stretch of a workspace's log need not be read again."""
        self.peers.record_received(self.remote.name, stretch.writer, stretch.first, stretch.last)

    def count_unread(self) -> int:
        """Count the operations of other devices that the server logged and that were not read."""
        own = self._circle.signers
        return sum(item["hlc"][22:] not in own for stretch in self.receive() for item in stretch.items)

    def send(self, outgoing: Outgoing) -> Sent:
        """Hand operations to the server; what it puts aside it is sent again."""
        size, refused = 0, dict[Numbered, str]()
        circle = self._circle
        for workspace, pages in _by_workspace(outgoing).items():
            for page in pages:
                items = [item for _, item in page]
                answer = self._ask("POST", "/v1/changes", workspace, json={"items": with_cards(items, circle)})
                refused |= {page[one["index"]][0]: str(one["reason"]) for one in answer["put_aside"]}
                size += sum(len(str(item)) for item in items)
        node = circle.identity.node
        last = self.peers.stream(self.remote.name, node).last + len(outgoing.items)
        self.peers.record_sent(
            self.remote.name, node, Stream(last), outgoing.workspaces, tried=outgoing.numbers, refused=refused
        )
        reasons = dict.fromkeys(refused.values())
        return Sent(size, [f"{self.remote.url} puts aside what it is sent: {reason}" for reason in reasons])

    def needs_tidying(self, purges: int) -> bool:  # noqa: ARG002 - the server's own log follows its own purges
        """Tell that nothing has to be written anew."""
        return False

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:  # noqa: ARG002 - as above
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


def _by_workspace(outgoing: Outgoing) -> dict[str, list[_Page]]:
    """Return operations with their numbers, in pages that a server takes, by workspace."""
    found: dict[str, list[_Page]] = {}
    size = 0
    for number, item in zip(outgoing.numbers, outgoing.items, strict=True):
        pages = found.setdefault(number[0], [])
        if not pages or len(pages[-1]) == PAGE or size > PAGE_BYTES:
            pages.append([])
            size = 0
        pages[-1].append((number, item))
        size += len(json.dumps(item, ensure_ascii=False))
    return found
