"""The circle: the devices that share a home's memory, who vouches for whom, and what becomes of one that is lost.

Who holds the circle's code belongs to it. A device that is revoked gets no key of what is written from then on: the one
who revokes makes a new one and seals it, in a notice, to every device that stays.
"""

import base64
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.errors import Conflict, NotFound, PeerRefused
from pipeline.store.peers import Device, Identity, Peers
from pipeline.sync import keys
from pipeline.times import utc_now

Card = dict[str, Any]
CARD_FIELDS = ("node", "name", "verify_key", "recipient", "revoked_at")


@dataclass(frozen=True)
class Circle:
    """A home's circle as it is at one moment; made anew after each change."""

    peers: Peers

    @cached_property
    def identities(self) -> list[Identity]:
        """Return this machine's names, the present one first; the first is made here."""
        known = self.peers.identities()
        return known or [self._make_identity(platform.node() or "this machine")]

    @property
    def identity(self) -> Identity:
        """Return this machine's present name."""
        return self.identities[0]

    @cached_property
    def secrets(self) -> list[str]:
        """Return the circle's secrets, the present one first; a circle of one is made here."""
        known = self.peers.circle()
        if not known:
            known = [(1, keys.make_secret())]
            self.peers.add_circle(*known[0], utc_now())
        return [secret for _, secret in known]

    @property
    def epoch(self) -> int:
        """Return the how manieth key of the circle the present one is."""
        return self.peers.circle()[0][0] if self.secrets else 0

    @cached_property
    def devices(self) -> dict[str, Device]:
        """Return every device that belongs to the circle or did, this one too, by node."""
        for own in self.identities:
            self.peers.add_device(_device_of(own))
        return self.peers.devices()

    @cached_property
    def signers(self) -> dict[str, keys.Signer]:
        """Return what signs in each of this machine's names."""
        return {one.node: keys.Signer(one.seed) for one in self.identities}

    @cached_property
    def recipient(self) -> str:
        """Return to whom what is written now is sealed: whoever holds the circle's present key."""
        return keys.recipient_of(keys.circle_identity(self.secrets[0]))

    @cached_property
    def openers(self) -> list[str]:
        """Return every key that opens what was sealed to the circle, or to this machine alone."""
        return [*(keys.circle_identity(one) for one in self.secrets), *(one.age for one in self.identities)]

    @property
    def code(self) -> str:
        """Return what a new device needs to trust and to read."""
        return keys.code_of(self.secrets[0])

    @property
    def tokens(self) -> list[str]:
        """Return what a member shows to another's server, that of the present key first."""
        return [keys.circle_token(one) for one in self.secrets]

    def name_of(self, node: str) -> str:
        """Return what a person calls a device."""
        device = self.devices.get(node)
        return node if device is None else device.name

    def _make_identity(self, name: str) -> Identity:
        seed = keys.make_seed()
        node = keys.node_of(keys.verify_key_of(seed))
        identity = Identity(node, name, seed, keys.make_age_identity(), utc_now())
        self.peers.add_identity(identity)
        return identity

    def rename(self) -> None:
        """Give this machine a new name among others, where another one writes under its present one."""
        count = len(self.identities) + 1
        self._make_identity(f"{self.identities[-1].name} ({count})")

    def join(self, code: str) -> None:
        """Enter the circle that a code opens; raise Conflict where this home already shares with other devices."""
        secret = keys.secret_of(code)
        if secret in self.secrets:
            return
        others = [one for one in self.devices.values() if one.node not in self.signers and one.revoked_at is None]
        if others:
            names = ", ".join(sorted(one.name for one in others))
            raise Conflict(f"this home already shares with {names}; invite the new device from here instead")
        self.peers.leave_circle()
        self.peers.add_circle(1, secret, utc_now())

    # Cards: by these devices come to know each other

    def vouch(self, device: Device) -> Card:
        """Return a device's card, signed with the circle's key."""
        told = {name: getattr(device, name) for name in CARD_FIELDS}
        signer = keys.Signer(keys.circle_seed(self.secrets[0]))
        return {**told, "signature": signer.sign(_canonical(told))}

    def cards(self) -> list[Card]:
        """Return the cards of every device, this one first."""
        own = self.devices[self.identity.node]
        return [self.vouch(one) for one in (own, *(one for one in self.devices.values() if one is not own))]

    def meet(self, cards: Iterable[Card]) -> None:
        """Trust the devices that a member vouches for, and those no longer that it says were revoked."""
        vouchers = [keys.verify_key_of(keys.circle_seed(one)) for one in self._present_secrets()]
        for card in cards:
            told: dict[str, Any] = {name: card.get(name) for name in CARD_FIELDS}
            signature = str(card.get("signature", ""))
            if not any(keys.is_signed(one, signature, _canonical(told)) for one in vouchers):
                continue
            if not all(isinstance(told[name], str) for name in CARD_FIELDS if name != "revoked_at"):
                raise PeerRefused("a device's card cannot be read")
            device = Device(**{**told, "added_at": utc_now()})
            known = self.devices.get(device.node)
            if not keys.is_node_of(device.node, device.verify_key):
                raise PeerRefused(f"the device {device.name} claims a name that is not its own")
            if not keys.is_recipient(device.recipient):
                raise PeerRefused(f"nothing could be sealed to the device {device.name}")
            if known is None:
                self.peers.add_device(device)
            if device.revoked_at is not None and (known is None or known.revoked_at is None):
                self.peers.revoke([device.node], device.revoked_at)

    def _present_secrets(self) -> list[str]:
        known = self.peers.circle() or [(1, self.secrets[0])]
        return [secret for epoch, secret in known if epoch == known[0][0]]

    # Revoking

    def find(self, name: str) -> Device:
        """Return another device by its name or node."""
        found = [one for one in self.devices.values() if name in (one.name, one.node) and one.revoked_at is None]
        found = [one for one in found if one.node not in self.signers]
        if not found:
            raise NotFound(f"no other device is called {name}; `reverie sync devices` lists them")
        if len(found) > 1:
            raise Conflict(f"{len(found)} devices are called {name}: name one by its number")
        return found[0]

    def revoke(self, node: str) -> None:
        """Trust a device no longer, and make a key that it does not get."""
        at = utc_now()
        self.peers.revoke([node], at)
        fresh = Circle(self.peers)
        epoch, secret = self.peers.circle()[0][0] + 1, keys.make_secret()
        revoked = [one.node for one in fresh.devices.values() if one.revoked_at is not None]
        told = {"epoch": epoch, "secret": secret, "revoked": sorted(revoked), "at": at, "by": self.identity.node}
        signed = {**told, "signature": self.signers[self.identity.node].sign(_canonical(told))}
        staying = [one.recipient for one in fresh.devices.values() if one.revoked_at is None]
        sealed = keys.seal(_canonical(signed), staying)
        self.peers.add_circle(epoch, secret, at, base64.b64encode(sealed).decode())

    def heed(self, notices: Iterable[str]) -> None:
        """Take the keys that other devices made when they revoked one.

        A notice that this machine cannot open is for others; raise PeerRefused for one that no member wrote.
        """
        known = set(self.peers.notices())
        for notice in notices:
            if notice in known:
                continue
            try:
                told = dict(json.loads(keys.unseal(base64.b64decode(notice), self.openers)))
            except (PeerRefused, ValueError):
                continue
            signature = str(told.pop("signature", ""))
            author = self.devices.get(str(told.get("by")))
            if (
                author is None
                or author.revoked_at
                or not keys.is_signed(author.verify_key, signature, _canonical(told))
            ):
                raise PeerRefused("a new key was sealed by a device that this home does not trust")
            self.peers.add_circle(int(told["epoch"]), str(told["secret"]), str(told["at"]), notice)
            self.peers.revoke([one for one in told["revoked"] if one not in self.signers], str(told["at"]))


def _device_of(identity: Identity) -> Device:
    verify_key = keys.verify_key_of(identity.seed)
    recipient = keys.recipient_of(identity.age)
    return Device(identity.node, identity.name, verify_key, recipient, identity.made_at)


def _canonical(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, sort_keys=True, ensure_ascii=False).encode()
