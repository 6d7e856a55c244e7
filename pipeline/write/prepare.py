"""Turn a draft into a memory that is ready for its transaction; needs no store.

normalize → redact → typed fields and key → scope → anchor → hash → search tokens

An echo is a text that Reverie rendered and an agent writes back as if it were new. A text that adds anything is no
echo: marks and labels that the renderer does not write count as an addition.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ulid import ULID

from pipeline.kernel.anchors import find_checkout, hash_of
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import (
    CUT,
    HEADER,
    INNER_QUOTES,
    MAX_BRANCH_CHARS,
    MAX_TAGS,
    RULES_HEADER,
    SAID_HEADER,
    SHORT_ID,
    TEAM_HEADER,
    UNSTORED,
    Anchor,
    Draft,
    EdgeDraft,
    FactKey,
    Kind,
    Memory,
    OptionalFields,
    Sensitivity,
    Source,
    Trust,
    branch_tag,
)
from pipeline.kernel.records.extraction import NO_EXTRACTION, Extraction
from pipeline.kernel.times import utc_now
from pipeline.text.instructions import instructs
from pipeline.text.memory_terms import list_value_texts, memory_terms
from pipeline.text.normalize import clean_tags, content_hash, normalize_id, normalize_text
from pipeline.text.redaction import redact
from pipeline.write.fact_placement import fact_key, fact_text, safe_value
from pipeline.write.fields import check_details, clean_metadata, normalize_content, resolve_scope

TRUST_OF_SOURCE: Mapping[Source, Trust] = {
    Source.USER: Trust.TRUSTED,
    Source.AGENT: Trust.TRUSTED,
    Source.AMBIENT: Trust.EVIDENCE,
    Source.IMPORT: Trust.EVIDENCE,
    Source.SYNC: Trust.EVIDENCE,
}

# The renderer's remarks after the text, in parentheses, with or without the memory or the day.
MARKS = ("stale", "contradicted", "superseded", "disputed", "expired", "unconfirmed")
# The renderer's remarks on the occasion.
SURFACE = "surface"
# The renderer's labels before the text, followed by a colon.
LABELS = ("lesson", "lesson learned", "decision", "goal", "rule", "warning")

# Between the words of a name.
_JOINTS = str.maketrans("-_", "  ")

_ID = rf"[0-9A-HJKMNP-TV-Z]{{{SHORT_ID}}}"
_LABEL = rf"(?:{'|'.join(LABELS)})"
_QUOTED = re.compile(r"\s*+(?:>\s*+)*+")
_LINE = re.compile(
    rf"(?:(?:[-*+•]|\d{{1,3}}[.)])\s++)?(?i:{_LABEL}:?\s)?\*{{0,2}}"
    rf"\[({_ID})(?:[^\w\[\]\n][^\[\]\n]{{0,120}})?\]\*{{0,2}}:?\s++(\S.*)"
)
_LABELLED = re.compile(rf"(?:{_LABEL}: )++(?=\S)", re.IGNORECASE)
_REFERENCE = rf"(?:\[?(?:[0-9A-Z]{{18}})?{_ID}\]?|\d{{4}}-\d\d-\d\d)"
_STATE = rf"(?:{'|'.join(MARKS)})(?: (?:by|since|on))?"
_MARK = rf"(?:{SURFACE} [\w-]{{1,64}}|{_STATE}(?: {_REFERENCE}(?:, {_REFERENCE}){{0,9}})?)"
_MARKED = re.compile(rf" \({_MARK}(?:[;,] {_MARK}){{0,5}}\)")
_NOTED = re.compile(r"(?:[a-z]{1,20} noted|[a-z0-9][a-z0-9 -]{0,31} said): “(.+)”\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that is ready for its transaction.

    `importance` is the caller's value, `redactions` the number of kinds of secrets that were removed, `echoes` the
    memories whose rendering the text repeats. `is_certain` marks a fact that a person stated with certainty in a
    message: it may end a value that a person or an agent stated. With `has_client_id`, the client chose
    the memory's id.
    """

    memory: Memory
    tokens: list[str]
    importance: float | None = None
    redactions: int = 0
    edges: tuple[EdgeDraft, ...] = ()
    echoes: "tuple[Echo, ...]" = ()
    loc: str = ""
    renamed_tags: Mapping[str, str] | None = None
    is_certain: bool = False
    has_client_id: bool = False
    extraction: Extraction = NO_EXTRACTION


def prepare_batch(drafts: Sequence[Draft]) -> list[Prepared]:
    """Prepare memories for one transaction; an error names the index of the invalid draft."""
    return [prepare(draft, f"items.{index}.") for index, draft in enumerate(drafts)]


def prepare(draft: Draft, loc: str = "") -> Prepared:
    """Prepare a draft as far as possible without a transaction; raise InvalidField for an invalid draft."""
    now, traits = utc_now(), TRAITS[draft.kind]
    # Redaction may lengthen a text, so the limit applies to the redacted text.
    redacted = redact(normalize_content(draft.content, f"{loc}content"))
    content = normalize_content(redacted.text, f"{loc}content")
    session_id = None if draft.session_id is None else normalize_id(draft.session_id) or None
    details, tags = check_details(draft.kind, draft.details, f"{loc}details"), clean_tags(draft.tags)
    memory = Memory(
        seq=UNSTORED,
        id=draft.id or str(ULID()),
        content=content,
        kind=draft.kind,
        scope=resolve_scope(draft.scope, session_id, f"{loc}scope.id"),
        tags=tuple(dict.fromkeys(tags.values())),
        metadata=clean_metadata({**draft.metadata, **draft.extraction.as_metadata()}, f"{loc}metadata"),
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
        **_optional_fields(draft, loc, has_secrets=bool(redacted.kinds)),
    )
    if draft.kind is Kind.KEYED_FACT:
        memory = _with_key(memory, loc)
    if instructs(join_agent_text(memory)):
        memory = replace(memory, instructs=True)
    tokens, repeats = memory_terms(memory), find_echoes(memory.content)
    renamed = {tag: stored for tag, stored in tags.items() if stored != tag}
    prepared = Prepared(
        memory, tokens, draft.importance, len(redacted.kinds), draft.edges, repeats, loc, renamed or None
    )
    return replace(prepared, has_client_id=draft.id is not None, extraction=draft.extraction)


def prepare_fact(key: FactKey, value: Any, draft: Draft) -> Prepared:
    """Prepare a keyed fact; its text replaces the draft's text, and the draft's time is the start of its validity."""
    details = {"subject": key.subject, "attribute": key.attribute, "value": value}
    return prepare(replace(draft, content=fact_text(key, value), kind=Kind.KEYED_FACT, details=details))


def _optional_fields(draft: Draft, loc: str, *, has_secrets: bool) -> dict[str, Any]:
    values = {field.name: getattr(draft, field.name) for field in fields(OptionalFields)}
    anchor, branch = complete_anchor(draft.anchor, f"{loc}anchor"), check_branch(draft.branch, f"{loc}branch")
    sensitivity = draft.sensitivity or (Sensitivity.SECRET_ADJACENT if has_secrets else Sensitivity.NORMAL)
    return {**values, "anchor": anchor, "branch": branch, "sensitivity": sensitivity}


def _with_key(memory: Memory, loc: str) -> Memory:
    details = memory.details
    key = fact_key(details["subject"], details["attribute"], f"{loc}details.")
    value = safe_value(key, details["value"])
    text = fact_text(key, value)
    return replace(
        memory,
        content=text,
        content_hash=content_hash(text),
        details={"subject": key.subject, "attribute": key.attribute, "value": value},
        key=key,
        valid_from=memory.occurred_at,
        valid_to=memory.expires_at,
    )


def complete_anchor(anchor: Anchor | None, loc: str) -> Anchor | None:
    """Return an anchor with its checkout and the hash of the current code, unless the caller provided the hash."""
    if anchor is None:
        return None
    path = normalize_id(anchor.path)
    if not path:
        raise InvalidField(FieldError(f"{loc}.path", "must contain more than white space"))
    named = replace(anchor, path=path, checkout=find_checkout(str(Path(path).parent)))
    return replace(named, content_hash=anchor.content_hash or hash_of(named))


def join_agent_text(memory: Memory) -> str:
    """Return all text of a memory that an agent may read: commands in fields count, too."""
    path = None if memory.anchor is None else memory.anchor.path
    names = (*memory.tags, path, memory.branch, memory.session_id, memory.scope.id)
    texts = list_value_texts((list(memory.details.values()), memory.metadata), with_keys=True)
    return "\n".join([memory.content, *texts, *(name.translate(_JOINTS) for name in names if name is not None)])


def mark_branch(item: Prepared, branch: str | None) -> Prepared:
    """Tag a memory that is written on another git branch than the default one."""
    memory = item.memory
    if branch is None or memory.source in (Source.IMPORT, Source.SYNC) or len(memory.tags) >= MAX_TAGS:
        return item
    tags = dict.fromkeys((*memory.tags, branch_tag(normalize_id(branch))))
    memory = replace(memory, tags=tuple(tags))
    return replace(item, memory=memory, tokens=memory_terms(memory))


def check_branch(branch: str | None, loc: str) -> str | None:
    """Return a branch name as it is stored; raise InvalidField if it is empty or too long."""
    name = None if branch is None else normalize_id(branch)
    if name is not None and not 0 < len(name) <= MAX_BRANCH_CHARS:
        raise InvalidField(FieldError(loc, f"must have 1 to {MAX_BRANCH_CHARS} characters"))
    return name


@dataclass(frozen=True, slots=True)
class Echo:
    """A rendered line: its id mark, its text, and whether it was cut off."""

    short_id: str
    text: str
    cut: bool


def find_echoes(content: str) -> tuple[Echo, ...]:
    """Return the rendered lines of a text that consists only of them, headers and blank lines; otherwise nothing."""
    if "[" not in content:
        return ()
    echoes: list[Echo] = []
    for raw in content.split("\n"):
        quote = _QUOTED.match(raw)
        line = raw[quote.end() if quote else 0 :].rstrip()
        if not line or line in (HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER):
            continue
        rendered = _LINE.fullmatch(line)
        if rendered is None:
            return ()
        echoes.append(_echo(rendered[1], rendered[2]))
    return tuple(echoes)


def is_echo_of(echo: Echo, content: str) -> bool:
    """Return whether a memory with this content contains all text of the line."""
    # After another quotation mark, an invisible character is rendered differently.
    text = normalize_text(echo.text.translate(INNER_QUOTES))
    forms = (normalize_text(form.translate(INNER_QUOTES)) for form in _forms(" ".join(content.split())))
    return any(form == text or (echo.cut and form.startswith(text)) for form in forms)


def _echo(short_id: str, rendered: str) -> Echo:
    text = _forms(rendered)[-1]
    stem = text.removesuffix(CUT).rstrip()
    # An ellipsis alone is a text; as a prefix it would match every memory.
    return Echo(short_id, stem, cut=True) if stem and stem != text else Echo(short_id, text, cut=False)


def _forms(text: str) -> tuple[str, str, str]:
    """Return the forms of a text that a memory may have: unchanged, without labels, unquoted."""
    bare = text
    while (start := bare.rfind(" (")) > 0 and _MARKED.fullmatch(bare, start):
        bare = bare[:start]
    label = _LABELLED.match(bare)
    bare = bare[label.end() :] if label else bare
    noted = _NOTED.match(bare)
    return text, bare, noted[1] if noted else bare
