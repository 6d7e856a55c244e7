"""The rights of callers: one rule for every route, by the right that the route needs."""

from enum import StrEnum

from config.paths import is_personal
from pipeline.errors import NO_WORKSPACE, Forbidden, NotFound
from pipeline.records.people import Caller, Role
from pipeline.store.people import People


class Access(StrEnum):
    """A right that concerns no single workspace: any caller, an admin, or the owner with the token."""

    ANYBODY = "anybody"
    ADMIN = "admin"
    HOME = "home"


Need = Role | Access


def require(caller: Caller, need: Need, workspace_id: str, people: People) -> None:
    """Raise NotFound for a workspace that the caller may not see, Forbidden for a missing right.

    The error does not reveal whether a workspace exists that the caller may not enter.
    """
    if isinstance(need, Access):
        is_enough = need is Access.ANYBODY or (caller.is_admin and (need is Access.ADMIN or caller.person is None))
        if not is_enough:
            who = "the owner or an admin" if need is Access.ADMIN else "the owner"
            raise Forbidden(f"Only {who} of this data directory may do this.")
        return
    role = caller.role_in(workspace_id)
    if role is None and caller.person is None and caller.is_admin and not (is_personal(workspace_id) and people.exists):
        # Without people in the data directory it is a workspace like any other.
        role = Role.OWNER
    if role is None:
        raise NotFound(NO_WORKSPACE)
    if not role.includes(need):
        raise Forbidden(f"This needs the role {need} in {workspace_id}; you are {role}. Ask an owner for it.")


def may_enter(caller: Caller, workspace_id: str, people: People) -> bool:
    """Return whether a caller may see that a workspace exists."""
    try:
        require(caller, Role.READER, workspace_id, people)
    except NotFound:
        return False
    return True


def may_write(caller: Caller, workspace_id: str, people: People) -> bool:
    """Return whether a caller may change a workspace."""
    try:
        require(caller, Role.WRITER, workspace_id, people)
    except (NotFound, Forbidden):
        return False
    return True
