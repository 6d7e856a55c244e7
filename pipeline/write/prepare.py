"""From a draft to something that is ready for its transaction: everything that needs no store.

normalize → redact → typed fields and key → scope → anchor → hash → search tokens
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ulid import ULID

from pipeline.anchors import hash_of
from pipeline.errors import FieldError, InvalidField
from pipeline.kinds import TRAITS
from pipeline.records import (
    MAX_BRANCH_CHARS,
    UNSTORED,
    Anchor,
    Draft,
    EdgeDraft,
    FactKey,
    Kind,
    Memory,
    OptionalFields,
    Source,
    Trust,
)
from pipeline.text.echo import Echo, find_echoes
from pipeline.text.instructions import instructs
from pipeline.text.redaction import redact, redact_json
from pipeline.text.tokens import memory_tokens
from pipeline.times import utc_now
from pipeline.write.fields import (
    check_details,
    check_metadata,
    content_hash,
    list_texts,
    normalize_content,
    normalize_id,
    normalize_json,
    resolve_scope,
)
from pipeline.write.keyed import fact_key, fact_text, safe_value

TRUST_OF_SOURCE: Mapping[Source, Trust] = {
    Source.USER: Trust.TRUSTED,
    Source.AGENT: Trust.TRUSTED,
    Source.AMBIENT: Trust.EVIDENCE,
    Source.IMPORT: Trust.EVIDENCE,
    Source.SYNC: Trust.EVIDENCE,
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that is ready for its transaction.

    `importance` is what the caller gave, `redactions` how many kinds of secrets were cut out of the text, `echoes` the
    memories that the text only repeats as they were shown.
    """

    memory: Memory
    tokens: list[str]
    importance: float | None = None
    redactions: int = 0
    edges: tuple[EdgeDraft, ...] = ()
    echoes: tuple[Echo, ...] = ()
    loc: str = ""


def prepare_batch(drafts: Sequence[Draft]) -> list[Prepared]:
    """Prepare memories for one transaction; an invalid draft is named by its index."""
    return [prepare(draft, f"items.{index}.") for index, draft in enumerate(drafts)]


def prepare(draft: Draft, loc: str = "") -> Prepared:
    """Do everything that needs no transaction; raise InvalidField for a draft that cannot be taken."""
    now = utc_now()
    # Redaction may lengthen a text, so the limit is checked on what will be stored.
    redacted = redact(normalize_content(draft.content, f"{loc}content"))
    content = normalize_content(redacted.text, f"{loc}content")
    metadata, _ = redact_json(normalize_json(draft.metadata))
    check_metadata(metadata, f"{loc}metadata")
    session_id = None if draft.session_id is None else normalize_id(draft.session_id) or None
    traits = TRAITS[draft.kind]
    details = check_details(draft.kind, draft.details, f"{loc}details")
    optional = _optional_fields(draft, loc)
    memory = Memory(
        seq=UNSTORED,
        id=str(ULID()),
        content=content,
        kind=draft.kind,
        scope=resolve_scope(draft.scope, session_id, f"{loc}scope.id"),
        tags=tuple(dict.fromkeys(draft.tags)),
        metadata=metadata,
        source=draft.source,
        trust=TRUST_OF_SOURCE[draft.source],
        importance=traits.importance if draft.importance is None else draft.importance,
        tier=traits.tier,
        pinned=False,
        session_id=session_id,
        created_at=now,
        occurred_at=draft.occurred_at or now,
        updated_at=now,
        archived_at=None,
        content_hash=content_hash(content),
        details=details,
        instructs=instructs(join_agent_text(content, details, optional["anchor"])),
        **optional,
    )
    if draft.kind is Kind.KEYED_FACT and memory.details:
        memory = _with_key(memory, loc)
    tokens, repeats = memory_tokens(memory.content, memory.occurred_at), find_echoes(memory.content)
    return Prepared(memory, tokens, draft.importance, len(redacted.kinds), draft.edges, repeats, loc)


def prepare_fact(key: FactKey, value: Any, draft: Draft) -> Prepared:
    """Prepare a keyed fact; the draft's text is replaced by the fact's, its time is when the fact begins to hold."""
    details = {"subject": key.subject, "attribute": key.attribute, "value": value}
    return prepare(replace(draft, content=fact_text(key, value), kind=Kind.KEYED_FACT, details=details))


def _optional_fields(draft: Draft, loc: str) -> dict[str, Any]:
    given = {one.name: getattr(draft, one.name) for one in fields(OptionalFields)}
    anchor, branch = complete_anchor(draft.anchor, f"{loc}anchor"), check_branch(draft.branch, f"{loc}branch")
    return {**given, "anchor": anchor, "branch": branch}


def _with_key(memory: Memory, loc: str) -> Memory:
    given = memory.details
    key = fact_key(given["subject"], given["attribute"], f"{loc}details.")
    value = safe_value(key, given["value"])
    text = fact_text(key, value)
    return replace(
        memory,
        content=text,
        content_hash=content_hash(text),
        details={"subject": key.subject, "attribute": key.attribute, "value": value},
        key=key,
        valid_from=memory.occurred_at,
    )


def complete_anchor(anchor: Anchor | None, loc: str) -> Anchor | None:
    """Return an anchor with the hash of what stands there now, unless the caller gave one."""
    if anchor is None:
        return None
    path = normalize_id(anchor.path)
    if not path:
        raise InvalidField(FieldError(f"{loc}.path", "must hold more than white space"))
    named = replace(anchor, path=path)
    return replace(named, content_hash=anchor.content_hash or hash_of(named))


def join_agent_text(content: str, details: Mapping[str, Any], anchor: Anchor | None) -> str:
    """Return everything of a memory that an agent reads: a command in its fields is a command, too."""
    return "\n".join([content, *list_texts(details), *([] if anchor is None else [anchor.path])])


def check_branch(branch: str | None, loc: str) -> str | None:
    """Return a branch's name as it is stored; raise InvalidField when it is empty or too long."""
    name = None if branch is None else normalize_id(branch)
    if name is not None and not 0 < len(name) <= MAX_BRANCH_CHARS:
        raise InvalidField(FieldError(loc, f"must have 1 to {MAX_BRANCH_CHARS} characters"))
    return name
