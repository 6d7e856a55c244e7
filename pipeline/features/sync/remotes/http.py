"""Another Reverie server as a remote: `GET` and `POST /v1/changes` for each workspace.

The circle's token authenticates its members. Connections use TLS unless the server is on this machine.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from config.paths import WORKSPACE_HEADER
from pipeline.features.sync.remotes.remote import Item, Outgoing, RemoteConnection, Sent, Stretch
from pipeline.features.sync.signed import cards_of, with_cards
from pipeline.kernel.errors import PeerRefused, RemoteUnreachable
from pipeline.kernel.store.peers import Numbered, Stream

TIMEOUT_S = 30.0
PAGE = 500
# A server accepts request bodies up to 8 MiB.
PAGE_BYTES = 4 * 1024 * 1024

_Page = list[tuple[Numbered, Item]]


class HttpRemote(RemoteConnection):
    """A remote that is another Reverie's server."""

    def meet(self) -> None:
        """Exchange the cards of known devices with the server."""
        circle = self.circle
        body = {"cards": circle.cards(), "notices": self.peers.notices()}
        # A server without the newest key accepts the token of an older one, and learns the newest.
        answer = self._ask("POST", "/v1/devices", tokens=circle.tokens, json=body)
        circle.heed(str(notice) for notice in answer["notices"])
        self.circle.meet(answer["cards"])

    def receive(self) -> Iterator[Stretch]:
        """Yield the operations that the server logged since the last exchange."""
        received = self.peers.received(self.remote.name)
        answer = self._ask("POST", "/v1/devices", json={"cards": [], "notices": []})
        for workspace in map(str, answer["workspaces"]):
            if self.remote.workspaces and workspace not in self.remote.workspaces:
                continue
            # The position in a workspace's log is stored like the position in a device's stream.
            known, cursor = received.get(workspace, []), 0
            while True:
                cursor = next((last for first, last in known if first <= cursor + 1 <= last), cursor)
                page = self._ask("GET", "/v1/changes", workspace, params={"after": str(cursor), "limit": str(PAGE)})
                items: list[Item] = page["items"]
                if not items:
                    break
                last = int(items[-1]["cursor"])
                self.circle.meet(cards_of(items))
                yield Stretch(workspace, cursor + 1, last, items)
                cursor = last

    def count_unread(self) -> int:
        """Count the unread operations of other devices on the server."""
        own = self.circle.signers
        return sum(item["hlc"][22:] not in own for stretch in self.receive() for item in stretch.items)

    def send(self, outgoing: Outgoing) -> Sent:
        """Send operations to the server; those that it quarantines are sent again later."""
        size, refused = 0, dict[Numbered, str]()
        circle = self.circle
        for workspace, pages in _by_workspace(outgoing).items():
            for page in pages:
                items = [item for _, item in page]
                answer = self._ask("POST", "/v1/changes", workspace, json={"items": with_cards(items, circle)})
                refused |= {page[refusal["index"]][0]: str(refusal["reason"]) for refusal in answer["put_aside"]}
                size += sum(len(str(item)) for item in items)
        node = circle.identity.node
        last = self.peers.stream(self.remote.name, node).last + len(outgoing.items)
        self.peers.record_sent(
            self.remote.name, node, Stream(last), outgoing.workspaces, tried=outgoing.numbers, refused=refused
        )
        reasons = dict.fromkeys(refused.values())
        return Sent(size, [f"{self.remote.url} does not accept operations yet: {reason}" for reason in reasons])

    def count_damaged(self) -> int:
        """Return 0, and send every operation again: the server ignores those that it has."""
        self.peers.forget_sent("remote", self.remote.name)
        return 0

    def _ask(
        self, method: str, path: str, workspace: str | None = None, tokens: Sequence[str] = (), **options: Any
    ) -> Mapping[str, Any]:
        headers = {} if workspace is None else {WORKSPACE_HEADER: workspace}
        url = f"{self.remote.url}{path}"
        try:
            for token in tokens or self.circle.tokens[:1]:
                shown = {**headers, "Authorization": f"Bearer {token}"}
                answer = httpx.request(method, url, headers=shown, timeout=TIMEOUT_S, **options)
                if answer.status_code != httpx.codes.UNAUTHORIZED:
                    break
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise PeerRefused(
                    f"{self.remote.url} is not in this circle. Join with the pairing code of that machine."
                )
            answer.raise_for_status()
            return dict(answer.json())
        except (httpx.HTTPError, ValueError) as error:
            raise RemoteUnreachable(f"{self.remote.url} does not answer: {str(error)[:300]}") from error


def _by_workspace(outgoing: Outgoing) -> dict[str, list[_Page]]:
    """Return numbered operations by workspace, in pages that a server accepts."""
    pages_by_workspace: dict[str, list[_Page]] = {}
    size = 0
    for number, item in zip(outgoing.numbers, outgoing.items, strict=True):
        pages = pages_by_workspace.setdefault(number[0], [])
        if not pages or len(pages[-1]) == PAGE or size > PAGE_BYTES:
            pages.append([])
            size = 0
        pages[-1].append((number, item))
        size += len(json.dumps(item, ensure_ascii=False))
    return pages_by_workspace
