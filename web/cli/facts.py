"""Commands for facts: values of an attribute that change over time."""

import json
from typing import Any

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Column, format_minute, format_value, minute_of, one_line, plain, scope_name, text_of
from web.cli.state import State

AS_OF = "Time of the value, such as yesterday or 2026-03-01.  [default: now]"
SCOPE = "Scope of the fact.  [default: workspace]"
NO_FACTS = "There are no facts here yet. Set one with `reverie facts set SUBJECT ATTRIBUTE VALUE`."


@click.group(cls=Group, bare_command="list")
def facts() -> None:
    """Set and look up facts whose values change over time. Without a command, list them."""


@facts.command("list")
@click.option("--subject", help="Only list facts about this subject.")
@click.option("--as-of", type=options.PAST, metavar="TIME", help="Only list values that were valid at this time.")
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@options.limit(50)
@pass_state
def list_facts(state: State, /, limit: int, **filters: Any) -> None:
    """List facts with all their values, or with the values of one time."""
    page = state.list_items("/v1/facts", limit, **filters)
    _print_facts(state, page)


@facts.command("get")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--as-of", type=options.PAST, metavar="TIME", help=AS_OF)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def get_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """Print the value of ATTRIBUTE of SUBJECT."""
    fact = state.ask(lambda client: client.request("GET", ("facts", subject, attribute), query=filters))
    if state.json:
        state.print_json(fact)
        return
    click.echo(plain(format_value(fact["value"])))
    until = f" until {format_minute(fact['valid_to'])}" if fact["valid_to"] else ""
    click.echo(f"{_format_key(fact)}, from {format_minute(fact['valid_from'])}{until}, {fact['id']}", err=True)


@facts.command("set")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@options.words("value", "VALUE...")
@click.option(
    "--from", "valid_from", type=options.PAST, metavar="TIME", help="When the value becomes valid.  [default: now]"
)
@click.option("--text", is_flag=True, help="Store VALUE as text, even if it looks like a number, true or false.")
@click.option("--scope", callback=options.parse_scope, metavar="KIND[:ID]", help=SCOPE)
@click.option("--source", type=options.SOURCE, help="Source of the fact.")
@click.option("--session", "session_id", metavar="ID", help="Session that the fact belongs to.")
@click.option("--to", metavar="TEAM", help="Store the fact for this team.  [default: local, this machine]")
@pass_state
def set_fact(state: State, /, subject: str, attribute: str, value: str, *, text: bool, **fields: Any) -> None:
    """Set ATTRIBUTE of SUBJECT to VALUE; the history keeps the earlier value."""
    body = {"value": value if text else parse_value(value)} | options.select_given_options(fields)
    fact = state.store(lambda client: client.request("PUT", ("facts", subject, attribute), body), fields["to"])
    if state.json:
        state.print_json(fact)
        return
    replaced = f", replaces {fact['replaced']}" if fact.get("replaced") else ""
    reason = f": {plain(fact['reason'])}" if fact.get("reason") else ""
    click.echo(f"{fact['outcome']} {_format_key(fact)} = {one_line(format_value(fact['value']))}{replaced}{reason}")
    for other in fact["similar"]:
        click.echo(f"{_format_key(other)} may mean the same", err=True)


@facts.command("end")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option(
    "--at", "valid_to", type=options.PAST, metavar="TIME", help="When the value stops being valid.  [default: now]"
)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def end_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """End the current value of ATTRIBUTE of SUBJECT without a new value."""
    fact = state.ask(lambda client: client.request("DELETE", ("facts", subject, attribute), query=filters))
    value = one_line(format_value(fact["value"]))
    state.show(fact, f"{_format_key(fact)} was {value} until {format_minute(fact['valid_to'])}")


@facts.command("history")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def history(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """List all values that ATTRIBUTE of SUBJECT had, oldest first."""
    page = state.ask(lambda client: client.request("GET", ("facts", subject, attribute, "history"), query=filters))
    _print_facts(state, page)


def parse_value(text: str) -> Any:
    """Return the number or truth value that a text spells exactly, else the text: 3.10 is a version, not 3.1."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) and json.dumps(value) == text else text


def _format_key(fact: dict[str, Any]) -> str:
    return f"{one_line(fact['subject'])}/{one_line(fact['attribute'])}"


def _print_facts(state: State, page: dict[str, Any]) -> None:
    columns: dict[str, Column] = {
        "subject": text_of("subject"),
        "attribute": text_of("attribute"),
        "value": lambda fact: one_line(format_value(fact["value"])),
        "from": minute_of("valid_from"),
        "until": minute_of("valid_to"),
        "source": "source",
        "scope": lambda fact: one_line(scope_name(fact["scope"])),
    }
    state.show_table(page, columns, empty=NO_FACTS)
