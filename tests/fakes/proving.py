"""The proof of a data directory's server, as fake servers of a test give it."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from web.server_proof import compute_proof, format_address


def prove(request: BaseHTTPRequestHandler, home: Path) -> dict[str, str]:
    """Return the proof that a request asks for, by its name in the answer; nothing where it asks for none."""
    nonces = parse_qs(urlsplit(request.path).query).get("nonce")
    if nonces is None:
        return {}
    token = (home / "token").read_text(encoding="ascii").strip()
    address = format_address(request.connection.getsockname())
    return {"proof": compute_proof(token, nonces[0], str(home), address)}
