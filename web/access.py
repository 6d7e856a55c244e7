"""What a caller may: one rule for every route, by what the route says it needs."""

from enum import StrEnum

from config.paths import is_personal
from pipeline.errors import Forbidden, NotFound
from pipeline.records.people import Caller, Role
from pipeline.store.people import People


class Access(StrEnum):
    """What a route needs that is about no one workspace: to be let in, to manage the home, to hold its token."""

    ANYBODY = "anybody"
    ADMIN = "admin"
    HOME = "home"


Need = Role | Access


def require(caller: Caller, need: Need, workspace_id: str, people: People) -> None:
    """Raise NotFound for a workspace that is not the caller's to know of, Forbidden for what they may not do.

    Whether a workspace that they may not enter exists, nobody is told.
    """
    if isinstance(need, Access):
        is_enough = need is Access.ANYBODY or (caller.is_admin and (need is Access.ADMIN or caller.person is None))
        if not is_enough:
            raise Forbidden(f"this needs the home's token{' or an admin' if need is Access.ADMIN else ''}")
        return
    role = caller.role_in(workspace_id)
    if role is None and caller.person is None and caller.is_admin and not _belongs_to_person(workspace_id, people):
        # In a home without people it is a workspace like any other.
        role = Role.OWNER
    if role is None:
        raise NotFound("no such workspace")
    if not role.includes(need):
        raise Forbidden(f"this needs the role {need} in {workspace_id}; you are {role}")


def may_enter(caller: Caller, workspace_id: str, people: People) -> bool:
    """Tell whether a caller may know of a workspace."""
    try:
        require(caller, Role.READER, workspace_id, people)
    except NotFound:
        return False
    return True


def may_write(caller: Caller, workspace_id: str, people: People) -> bool:
    """Tell whether a caller may change a workspace."""
    try:
        require(caller, Role.WRITER, workspace_id, people)
    except (NotFound, Forbidden):
        return False
    return True


def _belongs_to_person(workspace_id: str, people: People) -> bool:
    return is_personal(workspace_id) and people.exists
