"""How far a memory reaches, made definite."""

from pipeline.errors import FieldError, InvalidField
from pipeline.records import Scope, ScopeKind
from pipeline.write.normalize import normalize_id

_OWNED = frozenset({ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK})


def resolve_scope(scope: Scope | None, session_id: str | None, loc: str) -> Scope:
    """Return the scope to store: the workspace unless said otherwise; a session's is its own session's."""
    if scope is None:
        return Scope()
    if scope.kind is ScopeKind.WORKSPACE:
        return Scope(ScopeKind.WORKSPACE)
    owner = None if scope.id is None else normalize_id(scope.id) or None
    if scope.kind is ScopeKind.SESSION and owner is None:
        owner = session_id
    if scope.kind in _OWNED and owner is None:
        raise InvalidField(FieldError(loc, f"a scope of kind {scope.kind} needs an id"))
    return Scope(scope.kind, owner)
