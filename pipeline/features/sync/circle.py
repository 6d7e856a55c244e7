"""The circle: the devices that share memories, how they vouch for each other, and how one is revoked.

Every device that knows the circle's code belongs to it. Revoking a device makes a new key. A notice delivers the key,
sealed, to every remaining device, so that the revoked one cannot read later operations.
"""

import base64
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.features.sync import keys
from pipeline.kernel.errors import Conflict, NotFound, PeerRefused
from pipeline.kernel.store.peers import Device, Identity, Peers
from pipeline.kernel.times import utc_now

Card = dict[str, Any]
CARD_FIELDS = ("node", "name", "verify_key", "recipient", "revoked_at")


@dataclass(frozen=True)
class Circle:
    """A snapshot of the circle of a data directory; create a new one after each change."""

    peers: Peers

    @cached_property
    def identities(self) -> list[Identity]:
        """Return this machine's identities, the current one first; create the first if there is none."""
        known = self.peers.identities()
        return known or [self._make_identity(platform.node() or "this machine")]

    @property
    def identity(self) -> Identity:
        """Return this machine's current identity."""
        return self.identities[0]

    @cached_property
    def secrets(self) -> list[str]:
        """Return the circle's secrets, the current one first; create a circle of one device if there is none."""
        known = self.peers.circle()
        if not known:
            known = [(1, keys.make_secret())]
            self.peers.add_circle(*known[0], utc_now())
        return [secret for _, secret in known]

    @property
    def epoch(self) -> int:
        """Return the number of the circle's current key, counted from 1."""
        return self.peers.circle()[0][0] if self.secrets else 0

    @cached_property
    def devices(self) -> dict[str, Device]:
        """Return all current and revoked devices of the circle by node, including this one."""
        for own in self.identities:
            verify_key, recipient = keys.verify_key_of(own.seed), keys.recipient_of(own.age)
            self.peers.add_device(Device(own.node, own.name, verify_key, recipient, own.made_at))
        return self.peers.devices()

    @cached_property
    def signers(self) -> dict[str, keys.Signer]:
        """Return the signer of each of this machine's identities, by node."""
        return {identity.node: keys.Signer(identity.seed) for identity in self.identities}

    @cached_property
    def recipient(self) -> str:
        """Return the age recipient for new files: the owners of the circle's current key."""
        return keys.recipient_of(keys.circle_identity(self.secrets[0]))

    @cached_property
    def openers(self) -> list[str]:
        """Return every key that opens data sealed to the circle or to this machine only."""
        identities = [identity.age for identity in self.identities]
        return [*(keys.circle_identity(secret) for secret in self.secrets), *identities]

    @property
    def code(self) -> str:
        """Return the pairing code, which lets a new device join and read."""
        return keys.code_of(self.secrets[0])

    @property
    def tokens(self) -> list[str]:
        """Return the tokens for the servers of other members, the token of the current key first."""
        return [keys.circle_token(secret) for secret in self.secrets]

    def name_of(self, node: str) -> str:
        """Return the display name of a device."""
        device = self.devices.get(node)
        return node if device is None else device.name

    def _make_identity(self, name: str) -> Identity:
        seed = keys.make_seed()
        node = keys.node_of(keys.verify_key_of(seed))
        identity = Identity(node, name, seed, keys.make_age_identity(), utc_now())
        self.peers.add_identity(identity)
        return identity

    def rename(self) -> None:
        """Give this machine a new identity, because another machine uses its current one."""
        count = len(self.identities) + 1
        self._make_identity(f"{self.identities[-1].name} ({count})")

    def join(self, code: str) -> None:
        """Join the circle of a code; raise Conflict if this data directory already syncs with other devices."""
        secret = keys.secret_of(code)
        if secret in self.secrets:
            return
        if others := self._list_others():
            names = ", ".join(sorted(device.name for device in others))
            raise Conflict(f"this data directory already syncs with {names}; invite the new device from here instead")
        self.peers.leave_circle()
        self.peers.add_circle(1, secret, utc_now())

    def _list_others(self) -> list[Device]:
        """List the other devices that were not revoked."""
        return [
            device for device in self.devices.values() if device.node not in self.signers and device.revoked_at is None
        ]

    # Cards, which introduce devices to each other

    def vouch(self, device: Device) -> Card:
        """Return a device's card, signed with the circle's key."""
        fields = {name: getattr(device, name) for name in CARD_FIELDS}
        signer = keys.Signer(keys.circle_seed(self.secrets[0]))
        return {**fields, "signature": signer.sign(_canonical(fields))}

    def cards(self) -> list[Card]:
        """Return the cards of every device, this one first."""
        own_first = sorted(self.devices.values(), key=lambda device: device.node != self.identity.node)
        return list(map(self.vouch, own_first))

    def meet(self, cards: Iterable[Card]) -> None:
        """Trust the devices that a member vouches for, and stop trusting those that it reports as revoked."""
        known_keys = self.peers.circle() or [(1, self.secrets[0])]
        present = [secret for epoch, secret in known_keys if epoch == known_keys[0][0]]
        vouchers = [keys.verify_key_of(keys.circle_seed(secret)) for secret in present]
        for card in cards:
            fields: dict[str, Any] = {name: card.get(name) for name in CARD_FIELDS}
            signature = str(card.get("signature", ""))
            if not any(keys.is_signed(voucher, signature, _canonical(fields)) for voucher in vouchers):
                continue
            if not all(isinstance(fields[name], str) for name in CARD_FIELDS if name != "revoked_at"):
                raise PeerRefused("a device's card cannot be read")
            device = Device(**{**fields, "added_at": utc_now()})
            known = self.devices.get(device.node)
            if not keys.is_node_of(device.node, device.verify_key):
                raise PeerRefused(f"the device {device.name} claims a name that is not its own")
            if not keys.is_recipient(device.recipient):
                raise PeerRefused(f"the encryption key of the device {device.name} is invalid")
            if known is None:
                self.peers.add_device(device)
            if device.revoked_at is not None and (known is None or known.revoked_at is None):
                self.peers.revoke([device.node], device.revoked_at)

    # Revoking

    def find(self, name: str) -> Device:
        """Return another device by its name or node."""
        devices = [device for device in self._list_others() if name in (device.name, device.node)]
        if not devices:
            raise NotFound(f"no other device is called {name}; `reverie sync devices` lists them")
        if len(devices) > 1:
            raise Conflict(f"{len(devices)} devices are called {name}: use the id of one instead")
        return devices[0]

    def revoke(self, node: str) -> None:
        """Stop trusting a device, and make a new key for the others."""
        at = utc_now()
        self.peers.revoke([node], at)
        fresh = Circle(self.peers)
        epoch, secret = self.peers.circle()[0][0] + 1, keys.make_secret()
        revoked = [device.node for device in fresh.devices.values() if device.revoked_at is not None]
        notice = {"epoch": epoch, "secret": secret, "revoked": sorted(revoked), "at": at, "by": self.identity.node}
        signed = {**notice, "signature": self.signers[self.identity.node].sign(_canonical(notice))}
        staying = [device.recipient for device in fresh.devices.values() if device.revoked_at is None]
        sealed = keys.seal(_canonical(signed), staying)
        self.peers.add_circle(epoch, secret, at, base64.b64encode(sealed).decode())

    def heed(self, notices: Iterable[str]) -> None:
        """Accept the keys that other devices made when they revoked a device.

        Skip notices that this machine cannot open: they are for others. Raise PeerRefused if no member signed a notice.
        """
        known = set(self.peers.notices())
        for notice in notices:
            if notice in known:
                continue
            try:
                opened = dict(json.loads(keys.unseal(base64.b64decode(notice), self.openers)))
            except (PeerRefused, ValueError):
                continue
            signature = str(opened.pop("signature", ""))
            author = self.devices.get(str(opened.get("by")))
            if (
                author is None
                or author.revoked_at
                or not keys.is_signed(author.verify_key, signature, _canonical(opened))
            ):
                raise PeerRefused("a new key was sealed by a device that this data directory does not trust")
            self.peers.add_circle(int(opened["epoch"]), str(opened["secret"]), str(opened["at"]), notice)
            self.peers.revoke([node for node in opened["revoked"] if node not in self.signers], str(opened["at"]))


def _canonical(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()
