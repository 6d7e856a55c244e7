"""How far a memory reaches, made definite."""

from pipeline.errors import FieldError, InvalidField
from pipeline.records import Scope, ScopeKind

_OWNED = frozenset({ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK})


def resolve_scope(scope: Scope | None, session_id: str | None, loc: str) -> Scope:
    """Return the scope to store: the workspace unless said otherwise; a session's is its own session's."""
    if scope is None:
        return Scope()
    if scope.kind is ScopeKind.WORKSPACE:
        return Scope(ScopeKind.WORKSPACE)
    if scope.kind is ScopeKind.SESSION and scope.id is None and session_id is not None:
        return Scope(ScopeKind.SESSION, session_id)
    if scope.kind in _OWNED and scope.id is None:
        raise InvalidField(FieldError(loc, f"a scope of kind {scope.kind} needs an id"))
    return scope
