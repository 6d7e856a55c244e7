"""The passphrases of age without the seconds of work that each of its files costs."""

import hashlib

import pyrage
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from pipeline.features.sync.segment import SEALED

NONCE = bytes(12)


class QuickPassphrases:
    """What `pyrage.passphrase` offers: each file starts as those of age do, and opens as it was with its phrase."""

    @staticmethod
    def encrypt(content: bytes, phrase: str) -> bytes:
        """Return a file that only this phrase opens."""
        return SEALED + _make_cipher(phrase).encrypt(NONCE, content, None)

    @staticmethod
    def decrypt(content: bytes, phrase: str) -> bytes:
        """Return what a file contains; raise DecryptError for another phrase or a changed file."""
        try:
            return _make_cipher(phrase).decrypt(NONCE, content.removeprefix(SEALED), None)
        except InvalidTag as error:
            raise pyrage.DecryptError("Decryption failed") from error


def _make_cipher(phrase: str) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(hashlib.sha256(phrase.encode()).digest())
