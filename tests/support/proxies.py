"""The proxies that deploy/ has examples for, on free ports and with a certificate of a test's own: as they are shipped,
but for addresses and paths."""

import contextlib
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from socket import create_connection

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.stack import HOST, free_port, wait_until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME = "memory.example.com"
FRONT = "127.0.0.1:7077"
NGINX_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/reverie.conf;
}}
"""
CADDY_GLOBALS = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that vouches for itself, and its key, as files."""

    file: Path
    key: Path


def make_certificate(folder: Path) -> Certificate:
    """Write a certificate of the name that the examples have, and of the address that tests ask."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(ip_address(HOST))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    found = Certificate(folder / "fullchain.pem", folder / "privkey.pem")
    found.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    found.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return found


def write_nginx(folder: Path, certificate: Certificate, front: str = FRONT, port: int | None = None) -> Path:
    """Write the example for nginx, and a configuration around it; return that one."""
    text = (DEPLOY / "nginx" / "reverie.conf").read_text(encoding="utf-8")
    changes = {
        f"/etc/letsencrypt/live/{NAME}/fullchain.pem": str(certificate.file),
        f"/etc/letsencrypt/live/{NAME}/privkey.pem": str(certificate.key),
        f"server {FRONT};": f"server {front};",
        "listen 80;": f"listen {HOST}:{free_port()};",
        "    listen [::]:80;\n": "",
        "listen 443 ssl http2;": f"listen {HOST}:{port or free_port()} ssl http2;",
        "    listen [::]:443 ssl http2;\n": "",
    }
    (folder / "reverie.conf").write_text(_change(text, changes), encoding="utf-8")
    main = folder / "nginx.conf"
    main.write_text(NGINX_MAIN.format(folder=folder), encoding="utf-8")
    return main


def write_caddy(folder: Path, certificate: Certificate, front: str = FRONT, port: int | None = None) -> Path:
    """Write the example for Caddy; return its file."""
    text = (DEPLOY / "caddy" / "Caddyfile").read_text(encoding="utf-8")
    changes = {
        f"\n{NAME} {{": f"\n{NAME}:{port or free_port()} {{\n\ttls {certificate.file} {certificate.key}\n\tbind {HOST}",
        f"reverse_proxy {FRONT}": f"reverse_proxy {front}",
    }
    file = folder / "Caddyfile"
    file.write_text(CADDY_GLOBALS + _change(text, changes), encoding="utf-8")
    return file


def _change(text: str, changes: dict[str, str]) -> str:
    for known, other in changes.items():
        assert known in text, known
        text = text.replace(known, other)
    return text


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that runs: at which port, and the certificate that it shows."""

    port: int
    certificate: Certificate

    @property
    def authority(self) -> str:
        """Return what a Host header says."""
        return f"{NAME}:{self.port}"

    def connect(self) -> HTTPSConnection:
        """Return a connection that checks the certificate as browsers do."""
        context = ssl.create_default_context(cafile=str(self.certificate.file))
        connection = HTTPSConnection(NAME, self.port, context=context, timeout=30)
        # The name belongs to nobody: what stands behind it is here.
        connection.sock = context.wrap_socket(create_connection((HOST, self.port), 30), server_hostname=NAME)
        return connection


def _run_nginx(folder: Path, certificate: Certificate, front: str, port: int) -> list[str]:
    return ["nginx", "-c", str(write_nginx(folder, certificate, front, port)), "-p", str(folder)]


def _run_caddy(folder: Path, certificate: Certificate, front: str, port: int) -> list[str]:
    file = write_caddy(folder, certificate, front, port)
    return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]


PROXIES: dict[str, Callable[[Path, Certificate, str, int], list[str]]] = {"nginx": _run_nginx, "caddy": _run_caddy}


def is_installed(program: str) -> bool:
    """Tell whether this machine has a program."""
    return shutil.which(program) is not None


@contextlib.contextmanager
def run_proxy(name: str, folder: Path, front: str) -> Iterator[Proxy]:
    """Run a proxy in front of a web server during a block."""
    proxy = Proxy(free_port(), make_certificate(folder))
    command = PROXIES[name](folder, proxy.certificate, front, proxy.port)
    # Caddy keeps its state below the home.
    environment = {"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(f"{name} listens", lambda: process.poll() is not None or _listens(proxy.port))
        assert process.poll() is None, (folder / f"{name}.log").read_text(encoding="utf-8")
        yield proxy
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), create_connection((HOST, port), timeout=5):
        return True
    return False
