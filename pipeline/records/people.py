"""People of a data directory: who there is, what each may do in which workspace, and who makes a request. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from config.paths import PERSONAL_WORKSPACE, is_personal, personal_workspace_of
from pipeline.enums import ScopeKind
from pipeline.records import OWNED, PERSONAL, Scope, Viewer

# How a person's token begins, so that it is recognised wherever it is written by mistake.
TOKEN_PREFIX = "rvp_"  # noqa: S105 - no token itself
# Whose memories of these scopes are their own alone; a task is everybody's who works on it.
PRIVATE = frozenset({ScopeKind.USER, ScopeKind.AGENT, ScopeKind.SESSION})
PERSON_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
TokenClass = Literal["home", "person", "admin", "none"]


class Role(StrEnum):
    """What a person may do in a workspace: each role may what the one before it may."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"

    def includes(self, other: "Role") -> bool:
        """Return whether who has this role may do what another one is needed for."""
        return _ORDER[self] >= _ORDER[other]


_ORDER = {role: place for place, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with tokens of their own; the id is a slug of the name and never changes."""

    id: str
    name: str
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and what they may.

    Without a person it is the home's owner, who holds the home's token; nobody (`none`) asks for what is open to all.
    """

    person: Person | None = None
    token_id: str | None = None
    token_class: TokenClass = "home"  # noqa: S105 - names no token
    roles: Mapping[str, Role] = field(default_factory=dict)

    @property
    def person_id(self) -> str | None:
        """Return the person's id, None for the data directory's owner."""
        return None if self.person is None else self.person.id

    @property
    def is_admin(self) -> bool:
        """Return whether what concerns the whole home is theirs to see and do."""
        return self.token_class in ("home", "admin")

    def role_in(self, workspace_id: str) -> Role | None:
        """Return the role in a workspace, None without a grant; a personal store is open to its person alone."""
        if self.person is not None and workspace_id == personal_workspace_of(self.person.id):
            return Role.OWNER
        if is_personal(workspace_id):
            is_own = workspace_id == PERSONAL_WORKSPACE and self.person is None
            return Role.OWNER if is_own and self.is_admin else None
        return Role.OWNER if self.is_admin else self.roles.get(workspace_id)

    def may(self, workspace_id: str, role: Role) -> bool:
        """Return whether the caller has a role in a workspace, or one that includes it."""
        found = self.role_in(workspace_id)
        return found is not None and found.includes(role)


def own_name(person_id: str | None, name: str | None) -> str | None:
    """Return what a person's session or agent is called among others'; the home owner's has no mark."""
    return name if person_id is None or not name else f"{person_id}{OWNED}{name}"


def owner_of(name: str | None) -> str | None:
    """Return whose a name is, None for one of the data directory's owner."""
    owner, mark, _ = (name or "").partition(OWNED)
    return owner if mark else None


def shown_name(name: str | None) -> str | None:
    """Return what its owner calls a session or an agent, and of a person's own scope the person."""
    owner, mark, own = (name or "").partition(OWNED)
    return (own or owner) if mark else name


def personal_scope(person_id: str | None) -> Scope:
    """Return the scope of what is about a person."""
    return PERSONAL if person_id is None else Scope(ScopeKind.USER, f"{person_id}{OWNED}")


def own_scope(person_id: str | None, scope: Scope) -> Scope:
    """Return a scope that a person names, as it is called among those of others."""
    if person_id is None or scope.kind not in PRIVATE:
        return scope
    if scope.kind is ScopeKind.USER:
        return personal_scope(person_id)
    return Scope(scope.kind, own_name(person_id, scope.id))


def own_viewer(person_id: str | None, viewer: Viewer) -> Viewer:
    """Return who asks, where a person does: they are themselves, and their agents and sessions are their own."""
    if person_id is None:
        return viewer
    return Viewer(
        personal_scope(person_id).id,
        own_name(person_id, viewer.agent),
        own_name(person_id, viewer.session),
        viewer.task,
        person=person_id,
    )


HOME_OWNER = Caller()
NOBODY = Caller(token_class="none")  # noqa: S106 - names no token
