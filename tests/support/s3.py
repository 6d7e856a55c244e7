"""A server for S3, SeaweedFS, on free ports of this machine and with a folder of its own."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from tests.support.programs import Program, ProgramEnded
from tests.support.stack import HOST, free_port

PROGRAM = Path(sys.executable).with_name("weed")
KEY, SECRET = "key", "a secret of sixteen"
PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
    *("filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"),
)
TRIES = 3


class S3Server:
    """A server with what it stores in a folder; what it has acknowledged survives its kill."""

    def __init__(self, folder: Path) -> None:
        ports = {name: free_port() for name in PORTS}
        self.endpoint = f"http://{HOST}:{ports['s3.port']}"
        self.filer = f"http://{HOST}:{ports['filer.port']}"
        command = [str(PROGRAM), "server", f"-dir={folder / 'data'}", f"-ip={HOST}", f"-ip.bind={HOST}"]
        command += ["-filer", "-s3", *(f"-{name}={port}" for name, port in ports.items())]
        command += [f"-s3.config={folder / 's3.json'}", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"]
        # Each bucket takes seven: room for as many as one run of tests makes.
        command += ["-volume.max=500"]
        # What else it serves has fixed ports, so that a second server could not start.
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.peers=none"]
        self._program = Program(command, folder / "log", self._answers)

    @property
    def pid(self) -> int:
        """Return the id of its process."""
        return self._program.pid

    @property
    def environment(self) -> Mapping[str, str]:
        """Return S3's own variables, by which clients find it."""
        names = {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1", "ALLOW_HTTP": "true"}
        return {f"AWS_{name}": value for name, value in {**names, "ENDPOINT_URL": self.endpoint}.items()}

    def start(self) -> None:
        """Start it where it was."""
        self._program.start()

    def kill(self) -> None:
        """End it in the middle of everything; a graceful end takes 20 seconds."""
        self._program.kill()

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        httpx.post(f"{self.filer}/buckets/{name}/").raise_for_status()

    def _answers(self) -> bool:
        try:
            return all(
                httpx.get(url).status_code < httpx.codes.INTERNAL_SERVER_ERROR for url in (self.filer, self.endpoint)
            )
        except httpx.HTTPError:
            return False


@contextlib.contextmanager
def serve_s3(folder: Path) -> Iterator[S3Server]:
    """Serve S3 during a block."""
    (folder / "data").mkdir(parents=True)
    credentials = {"accessKey": KEY, "secretKey": SECRET}
    identity = {"name": "tests", "credentials": [credentials], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    server = _start(folder)
    try:
        yield server
    finally:
        server.kill()


def _start(folder: Path) -> S3Server:
    for attempt in range(TRIES):
        server = S3Server(folder)
        try:
            server.start()
        except ProgramEnded as error:
            # Somebody else took one of its ports in between.
            print(f"SeaweedFS ended at its start, attempt {attempt + 1}: {error}")
        except BaseException:
            server.kill()
            raise
        else:
            return server
    raise AssertionError((folder / "log").read_text(errors="replace")[-2000:])
