"""Bundles: everything that workspaces know, in one file that any later version reads.

gzip over lines of JSON: a header, then of each workspace its operations as they travel and what is this machine's alone
of each memory, and last the number of lines and the SHA-256 of all before. With a passphrase the whole is an age file.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.errors import PeerRefused
from pipeline.store import clock, meta, oplog, replicated_records
from pipeline.store.atomic_files import writing
from pipeline.store.database import Database
from pipeline.store.oplog import Operation
from pipeline.sync import keys, merge
from pipeline.sync.circle import Circle
from pipeline.sync.segment import SEALED
from pipeline.sync.signed import is_local, is_signed_by_device, read_item, to_item
from pipeline.times import utc_now

FORMAT, VERSION = "reverie bundle", 1
# So many operations are merged at once.
AT_ONCE = 5000
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class BundleCounts:
    """How many operations of how many memories a bundle holds, by workspace."""

    operations: dict[str, int] = field(default_factory=dict)
    memories: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class BundleMerged:
    """What became of a bundle: how much was new and how much known, by workspace, and what was not taken."""

    applied: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    put_aside: list[str] = field(default_factory=list)


def write_bundle(
    target: Path, stores: Iterable[tuple[str, Database]], circle: Circle | None, phrase: str | None = None
) -> BundleCounts:
    """Write a bundle under a name that no half of it ever bears."""
    counts = BundleCounts()
    with writing(target) as file:
        if phrase is None:
            _write(file, _lines(stores, circle, counts))
        else:
            whole = BytesIO()
            _write(whole, _lines(stores, circle, counts))
            file.write(keys.lock(whole.getvalue(), phrase))
    return counts


def _write(file: BinaryIO, lines: Iterator[Mapping[str, Any]]) -> None:
    digest, count = hashlib.sha256(), 0
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        for line in lines:
            count += 1
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            digest.update(text)
            packed.write(text)
        end = {"end": {"lines": count, "digest": digest.hexdigest()}}
        packed.write(json.dumps(end, separators=(",", ":")).encode() + b"\n")


def _lines(
    stores: Iterable[tuple[str, Database]], circle: Circle | None, counts: BundleCounts
) -> Iterator[Mapping[str, Any]]:
    cards = [] if circle is None else list(circle.cards())
    yield {"format": FORMAT, "version": VERSION, "made_at": utc_now(), "cards": cards}
    for workspace, database in stores:
        with database.read() as db:
            yield {"workspace": workspace, "node": meta.get(db, meta.NODE)}
            reached, counts.operations[workspace] = 0, 0
            while found := oplog.after(db, reached, AT_ONCE, oplog.ALL_SCOPES, is_copy=True):
                for _, operation in found:
                    yield {"operation": _item(workspace, operation, circle)}
                reached = found[-1][0]
                counts.operations[workspace] += len(found)
            local = list(replicated_records.read_local_values(db))
            counts.memories[workspace] = len(local)
            for one in local:
                yield {"local": one}


def _item(workspace: str, operation: Operation, circle: Circle | None) -> dict[str, Any]:
    if operation.signature is None and (circle is None or operation.node not in circle.signers):
        # Nobody vouches for it but who imports it.
        operation = replace(operation, signature="")
    return to_item(workspace, operation, circle)


def read_lines(source: Path, phrase: str | None) -> Iterator[dict[str, Any]]:
    """Yield a bundle's lines but the last, which is checked; raise PeerRefused for anything but a whole bundle."""
    digest, number, end = hashlib.sha256(), 0, None
    with _open(source, phrase) as packed:
        try:
            for text in packed:
                line = json.loads(text)
                if end is not None or not isinstance(line, dict):
                    raise PeerRefused("it goes on after its end")
                if "end" in line:
                    end = line["end"]
                    continue
                digest.update(text)
                number += 1
                if number == 1:
                    _check_header(line)
                yield line
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise PeerRefused("it was cut off or changed") from error
    if end != {"lines": number, "digest": digest.hexdigest()}:
        raise PeerRefused("it was cut off or changed")


def _open(source: Path, phrase: str | None) -> gzip.GzipFile:
    with source.open("rb") as file:
        start = file.read(len(SEALED))
    if start == SEALED:
        if phrase is None:
            raise PeerRefused("it was written with a passphrase: give it in a file by --passphrase-file")
        return gzip.GzipFile(fileobj=BytesIO(keys.unlock(source.read_bytes(), phrase)))
    if not start.startswith(GZIP):
        raise PeerRefused("it is no bundle of Reverie's")
    return gzip.GzipFile(source)


def _check_header(line: Mapping[str, Any]) -> None:
    if line.get("format") != FORMAT:
        raise PeerRefused("it is no bundle of Reverie's")
    if line.get("version") != VERSION:
        raise PeerRefused("a later version of Reverie wrote it: bring this machine up to date")


def merge_bundle(
    source: Path, phrase: str | None, database: Callable[[str], Database], circle: Circle | None
) -> BundleMerged:
    """Merge a whole bundle: a home that holds nothing becomes the one that wrote it, to the row.

    What a device of this circle has signed stays that device's; all else is stamped as this machine's, at its time.
    """
    for _ in read_lines(source, phrase):
        # Nothing is taken of a bundle that is not whole.
        pass
    merged = BundleMerged()
    into: _Workspace | None = None
    for line in read_lines(source, phrase):
        if "workspace" in line:
            if into is not None:
                into.finish()
            into = _Workspace(str(line["workspace"]), database(str(line["workspace"])), circle, merged)
        elif into is not None:
            into.take(line)
    if into is not None:
        into.finish()
    return merged


@dataclass
class _Workspace:
    """One workspace of a bundle, on its way into a store."""

    name: str
    database: Database
    circle: Circle | None
    merged: BundleMerged
    operations: list[Operation] = field(default_factory=list)
    local: list[Mapping[str, Any]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with self.database.read() as db:
            self.node = meta.get(db, meta.NODE) or ""
            self.before = {
                key.memory_id for key in replicated_records.list_keys(db) if key.kind == replicated_records.MEMORY
            }
        self.merged.applied[self.name] = self.merged.known[self.name] = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """Take a line in; what cannot be taken is told and keeps nothing else from it."""
        if "local" in line:
            if is_local(line["local"]):
                self.local.append(line["local"])
            else:
                self.merged.put_aside.append(f"{self.name}: what was this machine's alone of a memory cannot be read")
            return
        try:
            self.operations.append(self._own(read_item(line.get("operation"), "", oplog.ALL_SCOPES)))
        except PeerRefused as error:
            self.merged.put_aside.append(f"{self.name}: {error}")
        if len(self.operations) >= AT_ONCE:
            self._merge()

    def _own(self, operation: Operation) -> Operation:
        """Return an operation under the name of whoever can vouch for it here."""
        if operation.node == self.node:
            return replace(operation, signature=None, via=None)
        if self.circle is not None and operation.node in self.circle.signers:
            return replace(operation, signature=None, via=None)
        if self.circle is not None and is_signed_by_device(self.name, operation, self.circle):
            return replace(operation, via=None)
        # Written by a machine that this one does not know, or before it had a name.
        after = tuple(sorted(self.renamed.get(one, one) for one in operation.after))
        again = Operation(clock.with_node(operation.hlc, self.node), operation.key, operation.fields, after)
        self.renamed[operation.id] = again.id
        return again

    def _merge(self) -> None:
        done = merge.merge(self.database, self.operations)
        self.merged.applied[self.name] += done.applied
        self.merged.known[self.name] += done.known
        self.merged.put_aside += [f"{self.name}: {reason}" for _, reason in done.put_aside]
        self.operations = []

    def finish(self) -> None:
        """Merge what is left, and let what came be as it was where it came from."""
        self._merge()
        fresh = [one for one in self.local if one.get("id") not in self.before]
        with self.database.write() as db:
            replicated_records.write_local_values(db, fresh)
