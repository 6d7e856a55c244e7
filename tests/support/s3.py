"""A server for S3, SeaweedFS, on free ports of this machine and with a folder of its own."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.stack import HOST, free_port, wait_until

PROGRAM = Path(sys.executable).with_name("weed")
KEY, SECRET = "key", "a secret of sixteen"
PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
TRIES = 3


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server."""

    endpoint: str
    filer: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Return S3's own variables, by which clients find it."""
        names = {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1", "ALLOW_HTTP": "true"}
        return {f"AWS_{name}": value for name, value in {**names, "ENDPOINT_URL": self.endpoint}.items()}

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket; a server has room for few."""
        httpx.post(f"{self.filer}/buckets/{name}/").raise_for_status()


@contextlib.contextmanager
def serve_s3(folder: Path) -> Iterator[S3Server]:
    """Serve S3 during a block."""
    (folder / "data").mkdir(parents=True)
    credentials = {"accessKey": KEY, "secretKey": SECRET}
    identity = {"name": "tests", "credentials": [credentials], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    server, process = _start(folder)
    try:
        yield server
    finally:
        # A graceful end takes 20 seconds, and nothing of it is needed again.
        process.kill()
        process.wait()


def _start(folder: Path) -> tuple[S3Server, subprocess.Popen[bytes]]:
    for attempt in range(TRIES):
        ports = {name: free_port() for name in (*PORTS, "s3.port", "s3.port.grpc")}
        command = [
            str(PROGRAM),
            "server",
            f"-dir={folder / 'data'}",
            f"-ip={HOST}",
            f"-ip.bind={HOST}",
            "-filer",
            "-s3",
        ]
        command += [f"-{name}={port}" for name, port in ports.items()]
        command += [f"-s3.config={folder / 's3.json'}", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        server = S3Server(f"http://{HOST}:{ports['s3.port']}", f"http://{HOST}:{ports['filer.port']}")
        try:
            wait_until("SeaweedFS answers or has ended", lambda: process.poll() is not None or _answers(server))  # noqa: B023
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.poll() is None:
            return server, process
        # Somebody else took one of its ports in between.
        print(f"SeaweedFS ended at its start, attempt {attempt + 1}")
    raise AssertionError((folder / "log").read_text(errors="replace")[-2000:])


def _answers(server: S3Server) -> bool:
    try:
        return all(
            httpx.get(url).status_code < httpx.codes.INTERNAL_SERVER_ERROR for url in (server.filer, server.endpoint)
        )
    except httpx.HTTPError:
        return False
