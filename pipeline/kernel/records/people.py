"""The people of a data directory, their roles per workspace, and the caller of a request. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from config.paths import PERSONAL_WORKSPACE, is_personal, personal_workspace_of
from pipeline.kernel.enums import ScopeKind
from pipeline.kernel.records import OWNED, PERSONAL, Scope, Viewer

# Prefix of people's tokens, by which a token is recognized in any text.
TOKEN_PREFIX = "rvp_"  # noqa: S105 - no token itself
# Scopes whose memories are private to their owner; a task is shared by everyone who works on it.
PRIVATE = frozenset({ScopeKind.USER, ScopeKind.AGENT, ScopeKind.SESSION})
PERSON_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
TokenClass = Literal["home", "person", "admin", "none"]


class Role(StrEnum):
    """A person's role in a workspace; each role includes the permissions of the role before it."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"

    def includes(self, other: "Role") -> bool:
        """Return whether this role includes the permissions of another."""
        return _ORDER[self] >= _ORDER[other]


_ORDER = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Person:
    """A person with tokens; the id is a slug of the name and never changes."""

    id: str
    name: str
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request, and the caller's permissions.

    Without a person the caller is the data directory's owner, who has its token; `none` marks an anonymous caller of
    public routes. `is_agent` marks the tools of an agent, which read less than its user. Nothing of a request that
    `is_incognito` is stored, and a request of a session that `is_read_only` changes nothing.
    """

    person: Person | None = None
    token_id: str | None = None
    token_class: TokenClass = "home"  # noqa: S105 - names no token
    roles: Mapping[str, Role] = field(default_factory=dict)
    is_agent: bool = False
    is_incognito: bool = False
    is_read_only: bool = False

    @property
    def person_id(self) -> str | None:
        """Return the person's id, None for the data directory's owner."""
        return None if self.person is None else self.person.id

    @property
    def is_admin(self) -> bool:
        """Return whether the caller may administer the data directory."""
        return self.token_class in ("home", "admin")

    def role_in(self, workspace_id: str) -> Role | None:
        """Return the role in a workspace, None without a grant; a personal store is open only to its person."""
        if self.person is not None and workspace_id == personal_workspace_of(self.person.id):
            return Role.OWNER
        if is_personal(workspace_id):
            is_own = workspace_id == PERSONAL_WORKSPACE and self.person is None
            return Role.OWNER if is_own and self.is_admin else None
        return Role.OWNER if self.is_admin else self.roles.get(workspace_id)

    def may(self, workspace_id: str, role: Role) -> bool:
        """Return whether the caller has a role in a workspace, or a role that includes it."""
        role_held = self.role_in(workspace_id)
        return role_held is not None and role_held.includes(role)


def caller_of(person_id: str | None) -> Caller:
    """Return a person as the caller, with access to their personal store only; the owner without a person."""
    return HOME_OWNER if person_id is None else Caller(Person(person_id, person_id), token_class="person")  # noqa: S106 - names no token


def qualified_name(person_id: str | None, name: str | None) -> str | None:
    """Return the stored name of a person's session or agent; names of the data directory's owner have no prefix."""
    return name if person_id is None or not name else f"{person_id}{OWNED}{name}"


def owner_of(name: str | None) -> str | None:
    """Return the owner of a name, None for the data directory's owner."""
    owner, mark, _ = (name or "").partition(OWNED)
    return owner if mark else None


def display_name(name: str | None) -> str | None:
    """Return the name of a session or an agent as its owner knows it; for a person's own scope, the person."""
    owner, mark, qualified_name = (name or "").partition(OWNED)
    return (qualified_name or owner) if mark else name


def personal_scope(person_id: str | None) -> Scope:
    """Return a person's personal scope."""
    return PERSONAL if person_id is None else Scope(ScopeKind.USER, f"{person_id}{OWNED}")


def qualified_scope(person_id: str | None, scope: Scope) -> Scope:
    """Return a scope with the stored name of its owner, for a scope that a person names."""
    if person_id is None or scope.kind not in PRIVATE:
        return scope
    if scope.kind is ScopeKind.USER:
        return personal_scope(person_id)
    return Scope(scope.kind, qualified_name(person_id, scope.id))


def qualified_viewer(person_id: str | None, viewer: Viewer) -> Viewer:
    """Return a person as the viewer, with the stored names of their agents and sessions."""
    if person_id is None:
        return viewer
    return Viewer(
        personal_scope(person_id).id,
        qualified_name(person_id, viewer.agent),
        qualified_name(person_id, viewer.session),
        viewer.task,
        person=person_id,
        only_normal=viewer.only_normal,
    )


HOME_OWNER = Caller()
NOBODY = Caller(token_class="none")  # noqa: S106 - names no token
