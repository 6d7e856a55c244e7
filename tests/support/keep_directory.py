"""`python -m tests.support.keep_directory NAME`: write a data directory of the present formats into tests/data/homes.

Its texts are always the same; ids and times are new. It contains no token of a server and no path of the machine.
"""

import json
import sys
import tarfile
from pathlib import Path

from pipeline.features.people.usecases import add_person
from pipeline.features.snapshots import usecases as snapshots
from tests.fakes.in_process import flush_notes, scratch_folder
from tests.fakes.kept_directories import FOLDER
from tests.power.site import Site
from web.hooks.spool.writes import add_client_ids, spool_write

WORKSPACE = "default"
TEXTS = (
    "The staging database listens on port 6543",
    "Deploys of the billing service need the VPN",
    "The canal of the payments team is #pay",
    "The style guide asks for tabs",
    "The nightly export runs at four",
)
SPOOLED = "The release train leaves on Thursdays"
SECOND_TEXT = "The canal of the payments team is #payments"
ARCHIVED = "A note that was archived"
PURGED = "The flumadiddle was signed"
# Neither may be in a file.
FORBIDDEN = (b"flumadiddle", b"/home/", b"/tmp/", b"/dev/shm", b"/work")


def make_directory(root: Path) -> None:
    """Write a data directory with something in each kind of file."""
    site = Site(root)
    ids = [site.call("POST", "/v1/memories", {"content": text})["id"] for text in TEXTS]
    items = [{"content": ARCHIVED}, {"content": PURGED}]
    archived, purged = site.call("POST", "/v1/memories/batch", {"items": items})["results"]
    site.call("PATCH", f"/v1/memories/{ids[2]}", {"content": SECOND_TEXT, "tags": ["teams"]})
    for port in ("8080", "9090"):
        site.call("PUT", "/v1/facts/checkout-service/port", {"value": port})
    site.call("DELETE", f"/v1/memories/{archived['id']}")
    site.call("POST", "/v1/goals", {"title": "Ship the new checkout"})
    said = [{"role": "user", "content": "the queue of the mailer is called heron"}]
    site.call("POST", "/v1/turns", {"session_id": "s-1", "messages": said})
    site.call("POST", "/v1/memories", {"content": "I prefer short answers", "scope": {"kind": "user"}})
    site.call("POST", f"/v1/memories/{ids[4]}/move", {"workspace": "other"})
    add_person(site.web.people, "Ann")
    flush_notes(site.web)
    site.digest()
    site.call("DELETE", f"/v1/memories/{purged['id']}?hard=true")
    flush_notes(site.web)
    for name in site.web.databases.ids():
        for job in ("segment", "vectors", "health"):
            site.run(name, job)
    site.digest()
    snapshots.take_snapshot(site.settings, WORKSPACE)
    body = add_client_ids("POST", "/v1/memories", {"content": SPOOLED})
    spool_write(site.settings, "POST", "/v1/memories", body, WORKSPACE)
    site.stop()


def list_kept(root: Path) -> list[Path]:
    """List the files that belong to the data directory, not to the machine or to a process."""
    unwanted = (".lock", ".opening", "-shm", "-wal", ".sock")
    files = [file for file in root.rglob("*") if file.is_file() and not file.name.endswith(unwanted)]
    machine = {root / "token", *(root / "models").rglob("*"), *root.glob("queue*")}
    return sorted(set(files) - machine)


def main() -> None:
    """Write the archive."""
    with scratch_folder() as scratch:
        make_directory(scratch / "home")
        files = list_kept(scratch / "home")
        for file in files:
            wrong = [text for text in FORBIDDEN if text in file.read_bytes()]
            if wrong:
                sys.exit(f"{file.name} contains {wrong}")
        with tarfile.open(FOLDER / f"{sys.argv[1]}.tar.xz", "w:xz") as archive:
            for file in files:
                archive.add(file, file.relative_to(scratch / "home"), filter=_without_owner)
        print(json.dumps([str(file.relative_to(scratch / "home")) for file in files], indent=1))


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
