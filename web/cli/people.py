"""People who share this home: their tokens and what they may. They work on the home's files; no server is needed."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Group, State, pass_state
from web.cli.offline import open_home
from web.cli.render import plain, print_if_none, table

if TYPE_CHECKING:
    from pipeline.bootstrap.command import CommandContainer
    from pipeline.services.people import PersonRecord
    from pipeline.store.people import Token

ROLES = ("reader", "writer", "owner")
USUAL_ROLE = "writer"
_LIFETIME = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_lifetime(_context: click.Context, _parameter: click.Parameter, given: str | None) -> timedelta | None:
    """Take a length of time as `12h`, `90d` or `8w`."""
    if given is None:
        return None
    found = _LIFETIME.fullmatch(given)
    if found is None:
        raise click.BadParameter("must be a number of hours, days or weeks, as 12h, 90d or 8w")
    return int(found[1]) * _UNITS[found[2]]


@contextmanager
def _changing_people(state: State, command: str, workspace_id: str | None = None) -> Iterator["CommandContainer"]:
    """Give a command the data directory; what it changed is in the access log before it prints anything."""
    from pipeline.services.access_log import note_command

    with open_home(state) as home:
        yield home
        note_command(home.people, f"reverie user {command}", workspace_id)


@click.group(cls=Group)
def user() -> None:
    """People who share this home: their tokens, and what each may in which workspace."""


@user.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help=f"What they may in the workspace.  [default: {USUAL_ROLE}]")
@click.option("--admin", "is_admin", is_flag=True, help="Let them manage people, workers and every workspace.")
@click.option("--email", metavar="ADDRESS", help="By which e-mail address, or subject, OpenID Connect knows them.")
@click.option("--device", metavar="NAME", help="What the token is for; each device has its own.")
@click.option("--expires", "lifetime", callback=parse_lifetime, metavar="TIME", help="When it ends, as 12h, 90d or 8w.")
@pass_state
def add(
    state: State,
    name: str,
    role: str | None,
    email: str | None,
    device: str | None,
    lifetime: timedelta | None,
    *,
    is_admin: bool,
) -> None:
    """Make a token for NAME, shown this once as the last line; who is new is added, who is known gets another one.

    With --role or --workspace they get that role in that workspace; who is new gets one in any case.
    """
    from pipeline.records.people import Role
    from pipeline.services import people

    workspace = state.named_workspace or state.settings.workspace
    with _changing_people(state, "add", workspace) as home:
        is_new = people.find_person(home.people, name) is None
        given = Role(role or USUAL_ROLE) if role or state.named_workspace or (is_new and not is_admin) else None
        if given is not None:
            people.check_shared(workspace)
        person = people.add_person(home.people, name, is_admin=is_admin)
        if email is not None:
            people.set_email(home.people, person, email)
        made = people.add_token(home.people, person, device or people.name_device(home.people, person), lifetime)
        if given is not None:
            people.grant(home.people, person, workspace, given)
    roles = {} if given is None else {workspace: str(given)}
    told = {"id": person.id, "name": person.name, "admin": person.is_admin, "grants": roles, **_describe(made.token)}

    def show() -> None:
        if given is not None:
            click.echo(f"{person.id} is {given} of {workspace}")
        ends = f", until {made.token.expires_at}" if made.token.expires_at else ""
        click.echo(f"the token of {person.id} for the device {plain(made.token.device)}{ends}; it is shown only now:")
        click.echo(made.secret)

    state.show({**told, "token": made.secret}, show)


@user.command("list")
@pass_state
def list_(state: State) -> None:
    """List everybody with what they may, and their tokens with when each was last used."""
    from pipeline.services import people

    with open_home(state) as home:
        found = people.list_people(home.people)

    def show() -> None:
        print_if_none(found, "nobody but you: reverie user add NAME")
        rows = [row for one in found for row in _rows(one)]
        if rows:
            table(["id", "name", "may", "device", "token", "last used", "state"], rows)

    state.show([_record(one) for one in found], show)


@user.command("revoke")
@click.argument("name")
@click.option("--device", metavar="NAME", help="Only the token of this device.")
@click.option("--token", "token_id", metavar="ID", help="Only this token, by its id of `user list`.")
@pass_state
def revoke(state: State, name: str, device: str | None, token_id: str | None) -> None:
    """Revoke the tokens of NAME: from the next request on they open nothing."""
    from pipeline.services import people

    with _changing_people(state, "revoke") as home:
        revoked = people.revoke(home.people, people.get_person(home.people, name), device, token_id)
    names = ", ".join(f"{one.id} ({plain(one.device)})" for one in revoked)
    state.show([_describe(one) for one in revoked], f"revoked: {names}")


@user.command("remove")
@click.argument("name")
@pass_state
def remove(state: State, name: str) -> None:
    """Remove NAME with every token and role; what they wrote stays, and what is theirs alone stays closed."""
    from pipeline.services import people

    with _changing_people(state, "remove") as home:
        person = people.get_person(home.people, name)
        people.remove_person(home.people, person)
    state.show({"removed": person.id}, f"{person.id} is removed; what they wrote stays")


@user.command("grant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("role", type=click.Choice(ROLES))
@pass_state
def grant(state: State, name: str, workspace_id: str, role: str) -> None:
    """Give NAME a role in WORKSPACE, whatever it was before."""
    from pipeline.records.people import Role
    from pipeline.services import people

    with _changing_people(state, "grant", workspace_id) as home:
        person = people.get_person(home.people, name)
        people.grant(home.people, person, workspace_id, Role(role))
    told = {"id": person.id, "workspace": workspace_id, "role": role}
    state.show(told, f"{person.id} is {role} of {workspace_id}")


@user.command("ungrant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE")
@pass_state
def ungrant(state: State, name: str, workspace_id: str) -> None:
    """Take the role of NAME in WORKSPACE away."""
    from pipeline.services import people

    with _changing_people(state, "ungrant", workspace_id) as home:
        person = people.get_person(home.people, name)
        people.ungrant(home.people, person, workspace_id)
    state.show({"id": person.id, "workspace": workspace_id}, f"{person.id} has no role in {workspace_id} any more")


def _describe(token: "Token") -> dict[str, Any]:
    return {
        "token_id": token.id,
        "device": token.device,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


def _record(one: "PersonRecord") -> dict[str, Any]:
    return {
        "id": one.person.id,
        "name": one.person.name,
        "admin": one.person.is_admin,
        "email": one.email,
        "grants": dict(one.grants),
        "tokens": [_describe(token) for token in one.tokens],
    }


def _rows(one: "PersonRecord") -> list[list[str]]:
    who = [one.person.id, plain(one.person.name), _format_grants(one.grants, is_admin=one.person.is_admin)]
    tokens = [[plain(token.device), token.id, token.last_used_at or "never", _state_of(token)] for token in one.tokens]
    return [[*(who if place == 0 else ["", "", ""]), *row] for place, row in enumerate(tokens or [["", "", "", ""]])]


def _format_grants(grants: Mapping[str, Any], *, is_admin: bool) -> str:
    return ", ".join([*(["admin"] if is_admin else []), *(f"{role} of {name}" for name, role in grants.items())])


def _state_of(token: "Token") -> str:
    from pipeline.services.people import is_valid
    from pipeline.times import utc_now

    if token.revoked_at is not None:
        return "revoked"
    if not is_valid(token, utc_now()):
        return "expired"
    return "valid" if token.expires_at is None else f"until {token.expires_at}"
