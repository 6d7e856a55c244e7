"""Encrypt files outside of SQLite in an encrypted data directory, with the same key (AES-256-GCM of `cryptography`).

Only imported in encrypted data directories.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pipeline.kernel.store.key import StoreKey

_NONCE_BYTES = 12


def seal(key: StoreKey, label: str, content: bytes) -> bytes:
    """Return a content encrypted and authenticated; decryption requires the same label."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, content, label.encode())


def unseal(key: StoreKey, label: str, sealed: bytes) -> bytes:
    """Return the decrypted content; raise ValueError if the key, the label or a byte differs."""
    try:
        return _cipher(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], label.encode())
    except InvalidTag as error:
        raise ValueError("encrypted with another key, or changed") from error


def _cipher(key: StoreKey) -> AESGCM:
    # SQLCipher uses the key itself; two ciphers must not share a key.
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"reverie seal").derive(
        bytes.fromhex(key.digits)
    )
    return AESGCM(derived)
