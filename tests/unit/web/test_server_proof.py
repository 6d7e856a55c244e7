"""The proof by the two ends' own code is an ordinary HMAC over what both can see."""

import hashlib
import hmac
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from web.http.local_connection import read_content_length
from web.http.server_proof import compute_proof


@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=200), st.text("0123456789abcdef", max_size=64))
def test_the_proof_is_the_hmac_that_the_documents_describe(token, nonce):
    root = Path("/").stat()
    message = f"reverie server proof\n{nonce}\n{root.st_dev}:{root.st_ino}\n127.0.0.1 7077"
    expected = hmac.new(token.encode(), message.encode(), hashlib.sha256).hexdigest()
    assert compute_proof(token, nonce, "/", "127.0.0.1 7077") == expected


def test_each_part_changes_the_proof(tmp_path):
    parts = ("token", "00" * 16, str(tmp_path), "127.0.0.1 7077")
    others = ("token2", "01" * 16, "/", "127.0.0.1 7078")
    proofs = {compute_proof(*parts[:i], others[i], *parts[i + 1 :]) for i in range(len(parts))}
    assert len(proofs | {compute_proof(*parts)}) == 5


@pytest.mark.parametrize(
    ("head", "length"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 12", 12),
        (b"HTTP/1.1 200 OK\r\ncontent-length:0", 0),
        (b"HTTP/1.1 200 OK", -1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5", -1),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many", -1),
    ],
)
def test_a_length_is_a_number_or_none(head, length):
    assert read_content_length(head) == length
