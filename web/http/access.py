"""The rights of callers by route, and scopes, viewers and sessions: no person can act as another person."""

import time
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError
from ulid import ULID

from config.paths import is_personal
from pipeline.kernel.errors import NO_WORKSPACE, Forbidden, NotFound
from pipeline.kernel.records import Memory, Scope, ScopeKind, Viewer
from pipeline.kernel.records.people import Caller, Role, qualified_name, qualified_scope, qualified_viewer
from pipeline.kernel.store.people import People
from pipeline.write.fields import resolve_scope


class Right(StrEnum):
    """A right that concerns no single workspace: any caller, an admin, or the owner with the token."""

    ANYBODY = "anybody"
    ADMIN = "admin"
    HOME = "home"


Need = Role | Right


def require(caller: Caller, need: Need, workspace_id: str, people: People) -> None:
    """Raise NotFound for a workspace that the caller may not see, Forbidden for a missing right.

    The error does not reveal whether a workspace exists that the caller may not enter.
    """
    if isinstance(need, Right):
        is_enough = need is Right.ANYBODY or (caller.is_admin and (need is Right.ADMIN or caller.person is None))
        if not is_enough:
            who = "the owner or an admin" if need is Right.ADMIN else "the owner"
            raise Forbidden(f"Only {who} of this data directory may do this.")
        return
    role = _find_role(caller, workspace_id, people)
    if role is None:
        raise NotFound(NO_WORKSPACE)
    if not role.includes(need):
        raise Forbidden(f"This needs the role {need} in {workspace_id}; you are {role}. Ask an owner for it.")


def may_enter(caller: Caller, workspace_id: str, people: People) -> bool:
    """Return whether a caller may see that a workspace exists."""
    return _find_role(caller, workspace_id, people) is not None


def _find_role(caller: Caller, workspace_id: str, people: People) -> Role | None:
    is_home_owner = caller.person is None and caller.is_admin
    if is_home_owner and is_personal(workspace_id) and not people.exists:
        # Without people in the data directory it is a workspace like any other.
        return Role.OWNER
    return caller.role_in(workspace_id)


def scope_of_text(text: str, session_id: str | None, caller: Caller) -> Scope:
    """Return the scope that a query string names."""
    kind, _, owner = text.partition(":")
    named = resolve_scope(Scope(ScopeKind(kind), owner or None), session_id, "scope")
    return scope_of_caller(named, caller, "scope")


def scope_of_query(text: str | None, caller: Caller) -> Scope:
    """Return the scope that a query string names, else the scope of the workspace."""
    return Scope() if text is None else scope_of_text(text, None, caller)


def scope_of_caller(scope: Scope, caller: Caller, loc: str) -> Scope:
    """Return the scope that a caller names; raise Forbidden for another person's scope."""
    if scope.kind is ScopeKind.USER:
        _require_self(scope.id, caller, loc)
    return qualified_scope(caller.person_id, scope)


def viewer_of(viewer: Viewer, caller: Caller) -> Viewer:
    """Return the viewer: always the calling person, if there is one; raise Forbidden if the request names another.

    An agent sees no private memories.
    """
    _require_self(viewer.user, caller, "viewer.user")
    return replace(qualified_viewer(caller.person_id, viewer), only_normal=caller.is_agent)


def list_readable(memories: Iterable[Memory], caller: Caller) -> list[Memory]:
    """Return the memories that a caller may read: an agent only those that may be injected into a prompt."""
    return [memory for memory in memories if memory.may_be_injected or not caller.is_agent]


def require_readable(memory: Memory, caller: Caller) -> None:
    """Raise Forbidden if the caller is an agent and the memory must not be injected into a prompt."""
    if not list_readable([memory], caller):
        nature = "from a rule file" if memory.is_of_rule_file else memory.sensitivity
        raise Forbidden(
            f"This memory is {nature}, and agents cannot read it. "
            "Its user can read it on the dashboard or with `reverie get`."
        )


def session_of(session_id: str | None, caller: Caller) -> str | None:
    """Return the stored name of a caller's session, which is unique among people."""
    return qualified_name(caller.person_id, session_id)


def _require_self(user: str | None, caller: Caller, loc: str) -> None:
    if caller.person_id is not None and user not in (None, caller.person_id):
        raise Forbidden(f"{loc} names another person. This token belongs to {caller.person_id}; omit the field.")


# The clock of a client may be ahead of the server's.
CLOCK_TOLERANCE_S = 300


def _not_in_the_future(ulid: str) -> str:
    if ULID.from_str(ulid).timestamp > time.time() + CLOCK_TOLERANCE_S:
        raise PydanticCustomError("future", "must not be from the future")
    return ulid


ClientId = Annotated[
    str, StringConstraints(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"), AfterValidator(_not_in_the_future)
]
