"""A fake server at the Unix socket of a data directory."""

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from config.paths import HomePaths
from web.http.local_connection import find_socket


class LocalServer(ThreadingHTTPServer):
    """Answers the programs that use a data directory, which gets a token."""

    address_family = socket.AF_UNIX
    daemon_threads = True

    def __init__(self, home: Path, handler: type[BaseHTTPRequestHandler]) -> None:
        self.home = home
        HomePaths(home).token()
        super().__init__(find_socket(str(home)) or "", handler)

    def server_bind(self) -> None:
        """Bind to the socket, which has no name or port."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0
