"""Bundles: all contents of workspaces in one file that any later version can read.

Gzipped JSON lines: a header, then for each workspace its signed operations and the machine-local values of memories.
The last line contains the number and the SHA-256 of all earlier lines. With a passphrase, age encrypts the file.
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

from pipeline.features.sync import keys, merge
from pipeline.features.sync.circle import Circle
from pipeline.features.sync.segment import SEALED
from pipeline.features.sync.signed import is_local, is_signed_by_device, read_item, to_item
from pipeline.kernel.errors import PeerRefused
from pipeline.kernel.store import meta, oplog, replicated_records
from pipeline.kernel.store.atomic_files import writing
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.oplog import Operation
from pipeline.kernel.times import utc_now

FORMAT, VERSION = "reverie bundle", 1
# Number of operations merged in one batch.
AT_ONCE = 5000
GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class BundleCounts:
    """Number of operations and memories in a bundle, by workspace."""

    operations: dict[str, int] = field(default_factory=dict)
    memories: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class BundleMerged:
    """Result of importing a bundle: new and known operations by workspace, and reasons for rejected lines."""

    applied: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    put_aside: list[str] = field(default_factory=list)


def write_bundle(
    target: Path, stores: Iterable[tuple[str, Database]], circle: Circle | None, phrase: str | None = None
) -> BundleCounts:
    """Write a bundle; its name appears only after the file is complete."""
    counts = BundleCounts()
    with writing(target) as file:
        if phrase is None:
            _write(file, _lines(stores, circle, counts))
        else:
            packed = BytesIO()
            _write(packed, _lines(stores, circle, counts))
            file.write(keys.lock(packed.getvalue(), phrase))
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
            while numbered := oplog.after(db, reached, AT_ONCE, oplog.ALL_SCOPES, is_copy=True):
                for _, operation in numbered:
                    yield {"operation": _item(workspace, operation, circle)}
                reached = numbered[-1][0]
                counts.operations[workspace] += len(numbered)
            local = list(replicated_records.read_local_values(db))
            counts.memories[workspace] = len(local)
            for values in local:
                yield {"local": values}


def _item(workspace: str, operation: Operation, circle: Circle | None) -> dict[str, Any]:
    if operation.signature is None and (circle is None or operation.node not in circle.signers):
        # Only the importing machine can vouch for it.
        operation = replace(operation, signature="")
    return to_item(workspace, operation, circle)


# No operation is longer, and none packs better: its names and times differ.
_LINE_BYTES = 16 * 1024 * 1024
_UNPACKED_BYTES = 64 * 1024 * 1024
_MOST_RATIO = 50
_KINDS = frozenset({"workspace", "operation", "local"})


def read_lines(source: Path, phrase: str | None) -> Iterator[dict[str, Any]]:
    """Yield a bundle's lines and check the last one; raise PeerRefused if the bundle is damaged or incomplete."""
    digest, number, end, unpacked = hashlib.sha256(), 0, None, 0
    with _open(source, phrase) as packed:
        try:
            most = max(_UNPACKED_BYTES, _MOST_RATIO * source.stat().st_size)
            while text := packed.readline(_LINE_BYTES + 1):
                unpacked += len(text)
                if len(text) > _LINE_BYTES or unpacked > most:
                    raise PeerRefused("it unpacks to more than a bundle contains")
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
                elif _KINDS.isdisjoint(line):
                    raise PeerRefused("it was cut off or changed")
                yield line
        except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
            raise PeerRefused("it was cut off or changed") from error
    if end != {"lines": number, "digest": digest.hexdigest()}:
        raise PeerRefused("it was cut off or changed")


def _open(source: Path, phrase: str | None) -> gzip.GzipFile:
    # To open a pipe would wait for its other end.
    if not source.is_file():
        raise PeerRefused("it is not a regular file")
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
    """Merge a complete bundle. An empty data directory becomes an exact copy of the source, row by row.

    Operations signed by a device of this circle keep that device; others are stamped with this machine and their time.
    """
    for _ in read_lines(source, phrase):
        # Read all lines first, so that a damaged bundle changes nothing.
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
    """Import one workspace of a bundle into a store."""

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
        """Import a line. Record the reason if it is invalid, and continue with the others."""
        if "local" in line:
            if is_local(line["local"]):
                self.local.append(line["local"])
            else:
                self.merged.put_aside.append(f"{self.name}: the machine-local values of a memory are invalid")
            return
        try:
            self.operations.append(self._own(read_item(line.get("operation"), "", oplog.ALL_SCOPES)))
        except PeerRefused as error:
            self.merged.put_aside.append(f"{self.name}: {error}")
        if len(self.operations) >= AT_ONCE:
            self._merge()

    def _own(self, operation: Operation) -> Operation:
        """Return an operation with its own device as author if known here, otherwise with this machine."""
        if operation.node == self.node or (self.circle is not None and operation.node in self.circle.signers):
            return replace(operation, signature=None, via=None)
        if self.circle is not None and is_signed_by_device(self.name, operation, self.circle):
            return replace(operation, via=None)
        # An unknown machine wrote it, or this machine before it had a name.
        again = operation.stamped_by(self.node, self.renamed)
        self.renamed[operation.id] = again.id
        return again

    def _merge(self) -> None:
        done = merge.merge(self.database, self.operations)
        self.merged.applied[self.name] += done.applied
        self.merged.known[self.name] += done.known
        self.merged.put_aside += [f"{self.name}: {reason}" for _, reason in done.put_aside]
        self.operations = []

    def finish(self) -> None:
        """Merge the remaining operations, and restore the machine-local values of new memories."""
        self._merge()
        fresh = [values for values in self.local if values.get("id") not in self.before]
        with self.database.write() as db:
            replicated_records.write_local_values(db, fresh)
