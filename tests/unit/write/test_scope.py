import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Scope, ScopeKind
from pipeline.write.fields import resolve_scope

names = st.none() | st.text("abc -_", max_size=5)
OWNED = (ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK)


@given(st.sampled_from(list(ScopeKind)), names, st.none() | st.text("abc-_", min_size=1, max_size=5))
def test_a_resolved_scope_is_definite(kind, owner, session):
    try:
        scope = resolve_scope(Scope(kind, owner), session, "scope.id")
    except InvalidField:
        assert kind in OWNED
        assert not (owner or "").strip()
        return
    assert scope.kind is kind
    assert kind not in OWNED or scope.id is not None
    assert kind is not ScopeKind.WORKSPACE or scope.id is None
    assert resolve_scope(scope, session, "scope.id") == scope


def test_without_a_scope_it_is_the_workspace():
    assert resolve_scope(None, "s1", "scope.id") == Scope(ScopeKind.WORKSPACE)


def test_a_session_scope_is_its_own_sessions_unless_it_names_another():
    assert resolve_scope(Scope(ScopeKind.SESSION), "s1", "scope.id") == Scope(ScopeKind.SESSION, "s1")
    assert resolve_scope(Scope(ScopeKind.SESSION, "s2"), "s1", "scope.id") == Scope(ScopeKind.SESSION, "s2")


@pytest.mark.parametrize("kind", OWNED)
def test_scope_without_its_required_owner_is_rejected(kind):
    with pytest.raises(InvalidField) as refusal:
        resolve_scope(Scope(kind), None, "items.1.scope.id")
    assert refusal.value.errors[0].loc == "items.1.scope.id"
