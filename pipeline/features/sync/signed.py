"""Convert signed operations to JSON and back, checking every field."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pipeline.features.sync import keys
from pipeline.features.sync.circle import Card, Circle
from pipeline.kernel.errors import PeerRefused
from pipeline.kernel.records import (
    BRANCH_TAG,
    MAX_BRANCH_CHARS,
    MAX_CONTENT_CHARS,
    MAX_PATH_CHARS,
    MAX_SESSION_ID_CHARS,
    EdgeKind,
    Kind,
    ScopeKind,
    Sensitivity,
    Source,
    Tier,
    Trust,
)
from pipeline.kernel.records.people import PERSON_ID
from pipeline.kernel.store import clock, replicated_records
from pipeline.kernel.store.oplog import ERASED, Operation
from pipeline.kernel.store.replicated_records import MEMORY, PURGE, RELATIONS, Key

UNKNOWN = "signed by a device that is not paired with this data directory"
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
_TAG = re.compile(rf"tag:(?:[a-z0-9-]{{1,50}}|{BRANCH_TAG})")
_DETAIL = re.compile(r"details\.[a-z_]{1,40}")
_OPERATION = re.compile(r"[0-9a-f]{32}")
# Memories of one session or task stay on their machine.
TRAVELLING_SCOPES = (ScopeKind.WORKSPACE, ScopeKind.USER, ScopeKind.AGENT)
MAX_NAME_CHARS = 200
# Length of a name with its person as a prefix; of a scope, also with its kind.
MAX_OWNED_CHARS = MAX_SESSION_ID_CHARS + 64
MAX_FIELDS = 200
MAX_TEXT_CHARS = 100_000


def message_of(workspace: str, operation: Operation) -> bytes:
    """Return the signed message of an operation; the signature is valid in one workspace only."""
    return f"reverie operation 1\n{workspace}\n{operation.id}".encode()


def to_item(workspace: str, operation: Operation, circle: Circle | None) -> dict[str, Any]:
    """Return an operation as JSON values, signed if it was made here; raise PeerRefused if no key can sign it."""
    signature = operation.signature
    if signature is None:
        signer = None if circle is None else circle.signers.get(operation.node)
        if signer is None:
            raise PeerRefused(f"this machine has no key to sign for {operation.node}")
        signature = signer.sign(message_of(workspace, operation))
    key = operation.key
    return {
        "workspace": workspace,
        "id": operation.id,
        "hlc": operation.hlc,
        "kind": key.kind,
        "memory_id": key.memory_id,
        "other_id": key.other_id,
        "name": key.name,
        "fields": operation.fields,
        "after": list(operation.after),
        "signature": signature,
    }


def sign_all(
    workspace: str, numbered: Iterable[tuple[int, Operation]], circle: Circle
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Convert numbered operations to JSON values; skip those whose signing key is not on this machine."""
    for number, operation in numbered:
        if operation.signature is not None or operation.node in circle.signers:
            yield number, to_item(workspace, operation, circle)


def with_cards(items: Iterable[Mapping[str, Any]], circle: Circle) -> list[dict[str, Any]]:
    """Add the card of each device to its first operation, so that the receiver can trust the device."""
    cards = {card["node"]: card for card in circle.cards()}
    return [
        {**item, "card": card} if (card := cards.pop(item["hlc"][22:], None)) is not None else dict(item)
        for item in items
    ]


def cards_of(items: Iterable[Any]) -> list[Card]:
    """Return the cards attached to operations."""
    cards = [item.get("card") for item in items if isinstance(item, Mapping)]
    return [dict(card) for card in cards if isinstance(card, Mapping)]


def read_item(item: Any, via: str, scopes: Collection[str] = TRAVELLING_SCOPES) -> Operation:
    """Parse an operation; raise PeerRefused if it is invalid or of another scope."""
    if not isinstance(item, Mapping):
        raise PeerRefused("it is no operation")
    names = ("id", "hlc", "kind", "memory_id", "other_id", "name", "signature")
    texts: dict[str, Any] = {name: item.get(name) for name in names}
    fields, after = item.get("fields"), item.get("after", ())
    if not all(isinstance(text, str) for text in texts.values()):
        raise PeerRefused("a text is missing")
    if not isinstance(fields, Mapping) or len(fields) > MAX_FIELDS or not _are_operations(after):
        raise PeerRefused("its fields cannot be read")
    key = Key(texts["kind"], texts["memory_id"], texts["other_id"], texts["name"])
    try:
        clock.parse(texts["hlc"])
    except ValueError as error:
        raise PeerRefused(str(error)) from error
    check_record(key, fields)
    if key.kind == MEMORY and fields.get("scope_kind") not in (None, *scopes):
        raise PeerRefused("it belongs to one session or task, which is never synced")
    operation = Operation(texts["hlc"], key, dict(fields), tuple(after), texts["signature"], via)
    with suppress(UnicodeEncodeError):
        if operation.id == texts["id"]:
            return operation
    raise PeerRefused("it is not what was signed")


def is_local(row: Any) -> bool:
    """Return whether a row contains valid machine-local values of a memory."""
    if not isinstance(row, Mapping) or not _ID.fullmatch(str(row.get("id"))):
        return False
    try:
        anchor = json.loads(row.get("anchor") or "null")
    except (TypeError, ValueError):
        return False
    return (
        _share(row.get("importance"))
        and _or_nothing(_share)(row.get("given_importance"))
        and row.get("tier") in list(Tier)
        and isinstance(row.get("recall_count"), int)
        and _or_nothing(_moment)(row.get("recalled_at") or None)
        and _or_nothing(_local_anchor)(anchor)
    )


def check_signature(workspace: str, operation: Operation, circle: Circle) -> None:
    """Raise PeerRefused if an operation is not signed by its device."""
    if operation.node not in circle.devices:
        raise PeerRefused(UNKNOWN)
    if not is_signed_by_device(workspace, operation, circle):
        name = circle.name_of(operation.node)
        raise PeerRefused(f"it names {name} as its author, but has no valid signature of that device")


def is_signed_by_device(workspace: str, operation: Operation, circle: Circle) -> bool:
    """Return whether a known device signed an operation for a workspace."""
    author = circle.devices.get(operation.node)
    message = message_of(workspace, operation)
    return author is not None and keys.is_signed(author.verify_key, operation.signature or "", message)


def _are_operations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(operation_id, str) and _OPERATION.fullmatch(operation_id) for operation_id in value
    )


def check_record(key: Key, fields: Mapping[str, Any]) -> None:
    """Raise PeerRefused if a record of another machine has an invalid key or an invalid field."""
    _check_key(key)
    _check_fields(key, fields)


def _check_key(key: Key) -> None:
    known = key.kind in (MEMORY, PURGE) or key.kind in RELATIONS
    are_ids = all(_ID.fullmatch(name) for name in (key.memory_id, key.other_id or key.memory_id))
    if not known or not are_ids or len(key.name) > MAX_NAME_CHARS:
        raise PeerRefused("it is about nothing that is known")
    needs_other = key.kind in (replicated_records.EDGE, replicated_records.VERDICT)
    if needs_other != bool(key.other_id) and key.kind != replicated_records.HISTORY:
        raise PeerRefused("it names the wrong number of memories")
    if key.kind == replicated_records.EDGE and key.name not in list(EdgeKind):
        raise PeerRefused("there is no such edge")


def _check_fields(key: Key, fields: Mapping[str, Any]) -> None:
    if key.kind == PURGE:
        if set(fields) - {ERASED} or not _are_operations(fields.get(ERASED, [])):
            raise PeerRefused("a purge says nothing else")
        return
    checks = _MEMORY_CHECKS if key.kind == MEMORY else _RELATION_CHECKS[key.kind]
    for name, value in fields.items():
        if key.kind == MEMORY and (_TAG.fullmatch(name) or _DETAIL.fullmatch(name)):
            is_tag = name.startswith(replicated_records.TAG)
            fits = value is None or (value is True if is_tag else len(json.dumps(value)) <= MAX_TEXT_CHARS)
        elif key.kind != MEMORY and name == "gone":
            fits = value in (True, None)
        else:
            check = checks.get(name)
            fits = check is not None and check(value)
        if not fits:
            raise PeerRefused(f"its field {name[:60]} cannot be taken")
    if key.kind != MEMORY and fields.get("gone") is None:
        missing = [name for name, check in checks.items() if name not in fields and not check(None)]
        if missing:
            raise PeerRefused(f"its field {missing[0]} is missing")


Check = Callable[[Any], bool]


def _text(most: int, least: int = 1) -> Check:
    return lambda value: isinstance(value, str) and least <= len(value) <= most


def _one_of(kind: type) -> Check:
    return lambda value: isinstance(value, str) and value in list(kind)  # type: ignore[call-overload]


def _moment(value: Any) -> bool:
    return isinstance(value, str) and _MOMENT.fullmatch(value) is not None


def _flag(value: Any) -> bool:
    return value is None or value in (True, False, 0, 1)


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _object(value: Any) -> bool:
    return isinstance(value, Mapping) and len(json.dumps(value)) <= MAX_TEXT_CHARS


def _anchor(value: Any) -> bool:
    names = {"path", "first_line", "last_line", "content_hash"}
    return isinstance(value, Mapping) and set(value) == names and _text(MAX_PATH_CHARS)(value["path"])


def _local_anchor(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    anchor = {name: value[name] for name in value if name != "checkout"}
    return _anchor(anchor) and _or_nothing(_text(MAX_PATH_CHARS))(value.get("checkout"))


def _or_nothing(check: Check) -> Check:
    return lambda value: value is None or check(value)


_MEMORY_CHECKS: Mapping[str, Check] = {
    "content": _text(MAX_CONTENT_CHARS),
    "kind": _one_of(Kind),
    "scope_kind": _or_nothing(_one_of(ScopeKind)),
    "scope_id": _or_nothing(_text(MAX_OWNED_CHARS)),
    "source": _one_of(Source),
    "trust": _one_of(Trust),
    "session_id": _or_nothing(_text(MAX_OWNED_CHARS)),
    "created_at": _moment,
    "occurred_at": _moment,
    "updated_at": _moment,
    "archived_at": _or_nothing(_moment),
    "branch": _or_nothing(_text(MAX_BRANCH_CHARS)),
    "subject": _or_nothing(_text(MAX_NAME_CHARS)),
    "attribute": _or_nothing(_text(MAX_NAME_CHARS)),
    "valid_from": _or_nothing(_moment),
    "valid_to": _or_nothing(_moment),
    "expires_at": _or_nothing(_moment),
    "sensitivity": _or_nothing(_one_of(Sensitivity)),
    "pinned": _flag,
    "candidate": _flag,
    "importance": _share,
    "metadata": _or_nothing(_object),
    "anchor": _or_nothing(_anchor),
    "author": _or_nothing(lambda value: isinstance(value, str) and PERSON_ID.fullmatch(value) is not None),
    "shared_from": _or_nothing(_text(MAX_OWNED_CHARS)),
    "merged_into": _or_nothing(lambda value: isinstance(value, str) and _ID.fullmatch(value) is not None),
}
_OF_HISTORY = _or_nothing(_text(MAX_TEXT_CHARS, 0))
_RELATION_CHECKS: Mapping[str, Mapping[str, Check]] = {
    replicated_records.EDGE: {"made_by": _text(MAX_NAME_CHARS), "at": _moment},
    replicated_records.HISTORY: {
        "at": _moment,
        "event": _text(MAX_NAME_CHARS),
        "content": _OF_HISTORY,
        "detail": _object,
        "author": _or_nothing(_text(MAX_NAME_CHARS)),
    },
    replicated_records.VERDICT: {
        "state": lambda value: value in ("merged", "kept"),
        "settled_at": _or_nothing(_moment),
    },
    replicated_records.ANSWER: {
        "session_id": _or_nothing(_text(MAX_OWNED_CHARS)),
        "agent_id": _or_nothing(_text(MAX_OWNED_CHARS)),
        "at": _moment,
        "followed": lambda value: value in (0, 1),
        "note": _or_nothing(_text(MAX_TEXT_CHARS, 0)),
        "answered_at": _or_nothing(_moment),
        "withheld": _flag,
    },
    replicated_records.REFUSAL: {"how": lambda value: value in ("rejected", "archived"), "at": _moment},
}
