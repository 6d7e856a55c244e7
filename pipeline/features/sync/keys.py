"""Keys: the secret of a circle, the keys derived from it, and the signing key of each device.

The code is 18 random bytes. From it follow, by HKDF-SHA256 (RFC 5869), the X25519 key to which segments are sealed (age
format), the Ed25519 key that vouches for devices, and the token that opens another Reverie's change log. Ciphers and
signatures are pyrage's and cryptography's.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pipeline.kernel.errors import FieldError, InvalidField, PeerRefused
from pipeline.kernel.extras import require_extra

SECRET_BYTES = 18
CHECK_BYTES = 2
GROUP = 4
BUSY_TRIES = 3
# Part of age's error for a passphrase that would take too long to check.
EXCESSIVE = "Excessive work"


def make_secret() -> str:
    """Make a circle's secret, as hexadecimal digits."""
    return secrets.token_hex(SECRET_BYTES)


def code_of(secret: str) -> str:
    """Return a secret as a code that a person can type: eight groups of four characters."""
    raw = bytes.fromhex(secret)
    text = base64.b32encode(raw + _check(raw)).decode()
    return "-".join(text[start : start + GROUP] for start in range(0, len(text), GROUP))


def secret_of(code: str) -> str:
    """Return the secret of a code; raise InvalidField for a mistyped code."""
    text = "".join(code.split()).replace("-", "").upper().replace("0", "O").replace("1", "I").replace("8", "B")
    try:
        raw = base64.b32decode(text)
    except ValueError:
        raw = b""
    raw, check = raw[:SECRET_BYTES], raw[SECRET_BYTES:]
    if len(raw) != SECRET_BYTES or _check(raw) != check:
        raise InvalidField(FieldError("code", "is not a valid pairing code. Check for a mistyped character."))
    return raw.hex()


def _check(raw: bytes) -> bytes:
    # CRC-16 misses no error of up to 16 bits in a row: three characters, or two that changed places.
    return binascii.crc_hqx(raw, 0xFFFF).to_bytes(CHECK_BYTES, "big")


def _derive(secret: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"reverie " + purpose).derive(
        bytes.fromhex(secret)
    )


def circle_identity(secret: str) -> str:
    """Return the age key that opens data sealed to a circle."""
    require_extra("sync")
    import bech32

    data = bech32.convertbits(_derive(secret, b"seal"), 8, 5)
    return str(bech32.bech32_encode("age-secret-key-", data or [])).upper()


def circle_seed(secret: str) -> str:
    """Return the seed of the key that signs the cards of a circle's devices."""
    return _derive(secret, b"vouch").hex()


def circle_token(secret: str) -> str:
    """Return the bearer token of a circle's members for each other's servers."""
    return f"sync-{_derive(secret, b'token').hex()}"


def make_seed() -> str:
    """Make the seed of a device's signing key."""
    return secrets.token_hex(32)


def make_age_identity() -> str:
    """Make an age key for one device."""
    return str(_load_age().x25519.Identity.generate())


def recipient_of(identity: str) -> str:
    """Return the age recipient of an age key."""
    return str(_load_age().x25519.Identity.from_str(identity).to_public())


def verify_key_of(seed: str) -> str:
    """Return the public half of a signing key."""
    public = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)).public_key()
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def node_of(verify_key: str) -> str:
    """Return the node id of a device, derived from its key so that no other device can use it."""
    return hashlib.sha256(bytes.fromhex(verify_key)).hexdigest()[:16]


def is_node_of(node: str, verify_key: str) -> bool:
    """Return whether a node id belongs to a device's key."""
    try:
        return node_of(verify_key) == node
    except (TypeError, ValueError):
        return False


def is_recipient(text: str) -> bool:
    """Return whether a text is a valid age recipient."""
    age = _load_age()
    try:
        age.x25519.Recipient.from_str(text)
    except (TypeError, age.RecipientError):
        return False
    return True


class Signer:
    """Sign with one key many times."""

    def __init__(self, seed: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))

    def sign(self, message: bytes) -> str:
        """Return an Ed25519 signature (base64)."""
        return base64.b64encode(self._key.sign(message)).decode()


def is_signed(verify_key: str, signature: str, message: bytes) -> bool:
    """Return whether a signature of a message was made by a key."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(verify_key))
        key.verify(base64.b64decode(signature, validate=True), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _load_age() -> Any:
    """Import the age library on first use."""
    require_extra("sync")
    import pyrage

    return pyrage


def seal(content: bytes, recipients: Sequence[str]) -> bytes:
    """Encrypt to some age recipients."""
    age = _load_age()
    return bytes(age.encrypt(content, [age.x25519.Recipient.from_str(recipient) for recipient in recipients]))


def unseal(content: bytes, identities: Sequence[str]) -> bytes:
    """Decrypt with the age key that fits; raise PeerRefused if none does or the content was changed."""
    age = _load_age()
    try:
        return bytes(age.decrypt(content, [age.x25519.Identity.from_str(identity) for identity in identities]))
    except age.DecryptError as error:
        raise PeerRefused(f"it cannot be opened: {error}") from error


def lock(content: bytes, phrase: str) -> bytes:
    """Encrypt with a passphrase (age's scrypt)."""
    return bytes(_load_age().passphrase.encrypt(content, phrase))


def unlock(content: bytes, phrase: str) -> bytes:
    """Decrypt with a passphrase; raise PeerRefused if it is wrong.

    age briefly measures the speed of this machine and refuses files that would take too long. Retry, because the
    machine may have been busy during the measurement.
    """
    age = _load_age()
    for _ in range(BUSY_TRIES):
        try:
            return bytes(age.passphrase.decrypt(content, phrase))
        except age.DecryptError as error:
            if EXCESSIVE not in str(error):
                raise PeerRefused("the passphrase does not open it") from error
    raise PeerRefused("this machine is too busy to open it now; try again later")
