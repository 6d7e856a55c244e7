"""Facts on the command line: what holds, what held on a day, and since when."""

import json
from typing import Any

import click

from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, format_value, one_line, plain, scope_name, table

AS_OF = "The day or the time that is asked about, as 2026-03-01.  [default: now]"
SCOPE = "In which scope.  [default: workspace]"


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def facts(context: click.Context) -> None:
    """Keep facts that change: each value has the time in which it holds. Without a command, list all."""
    if context.invoked_subcommand is None:
        context.invoke(list_facts)


@facts.command("list")
@click.option("--subject", help="Only facts about this.")
@click.option("--as-of", callback=options.parse_time, metavar="TIME", help="Only what held on this day, as 2026-03-01.")
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@options.limit(50)
@pass_state
def list_facts(state: State, /, limit: int, **wanted: Any) -> None:
    """List facts with all their values, or with those of one day."""
    found = state.ask(lambda client: client.list_items("/v1/facts", limit, **wanted))
    _print_facts(state, found)


@facts.command("get")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--as-of", callback=options.parse_time, metavar="TIME", help=AS_OF)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def get_fact(state: State, /, subject: str, attribute: str, **wanted: Any) -> None:
    """Print the value of a fact: of its SUBJECT the ATTRIBUTE."""
    found = state.ask(lambda client: client.fact(subject, attribute, **wanted))
    if state.json:
        state.print_json(found)
        return
    click.echo(plain(format_value(found["value"])))
    until = f" until {format_minute(found['valid_to'])}" if found["valid_to"] else ""
    click.echo(f"{_format_key(found)}, from {format_minute(found['valid_from'])}{until}, {found['id']}", err=True)


@facts.command("set")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.argument("value")
@click.option(
    "--from", "valid_from", callback=options.parse_time, metavar="TIME", help="When it begins.  [default: now]"
)
@click.option("--text", is_flag=True, help="Take VALUE as text, though it looks like a number, true or false.")
@click.option("--scope", callback=options.parse_scope, metavar="KIND[:ID]", help=SCOPE)
@click.option("--source", type=options.SOURCE, help="Where it comes from.")
@click.option("--session", "session_id", metavar="ID", help="The session it belongs to.")
@click.option("--to", metavar="TEAM", help="The team to keep it for.  [default: local, this machine]")
@pass_state
def set_fact(state: State, /, subject: str, attribute: str, value: str, *, text: bool, **given: Any) -> None:
    """Give a fact VALUE; the value before is ended, not overwritten."""
    body = {"value": value if text else parse_value(value)} | options.select_given_options(given)
    found = state.store(lambda client: client.set_fact(subject, attribute, body), given["to"])
    if state.json:
        state.print_json(found)
        return
    replaced = f", in place of {found['replaced']}" if found.get("replaced") else ""
    reason = f": {plain(found['reason'])}" if found.get("reason") else ""
    click.echo(f"{found['outcome']} {_format_key(found)} = {one_line(format_value(found['value']))}{replaced}{reason}")
    for other in found["similar"]:
        click.echo(f"{_format_key(other)} may mean the same", err=True)


@facts.command("end")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--at", "valid_to", callback=options.parse_time, metavar="TIME", help="When it ends.  [default: now]")
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def end_fact(state: State, /, subject: str, attribute: str, **wanted: Any) -> None:
    """End the value of a fact without giving it another."""
    found = state.ask(lambda client: client.end_fact(subject, attribute, **wanted))
    if state.json:
        state.print_json(found)
    else:
        value = one_line(format_value(found["value"]))
        click.echo(f"{_format_key(found)} was {value} until {format_minute(found['valid_to'])}")


@facts.command("history", cls=Command)
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def history(state: State, /, subject: str, attribute: str, **wanted: Any) -> None:
    """List all values that a fact had, the first first."""
    found = state.ask(lambda client: client.fact_history(subject, attribute, **wanted))
    _print_facts(state, found)


def parse_value(text: str) -> Any:
    """Return the number or truth value that a text spells exactly, else the text: 3.10 is a version, not 3.1."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) and json.dumps(value) == text else text


def _format_key(fact: dict[str, Any]) -> str:
    return f"{one_line(fact['subject'])}/{one_line(fact['attribute'])}"


def _print_facts(state: State, found: dict[str, Any]) -> None:
    rows = [
        [
            one_line(fact["subject"]),
            one_line(fact["attribute"]),
            one_line(format_value(fact["value"])),
            format_minute(fact["valid_from"]),
            format_minute(fact["valid_to"]),
            fact["source"],
            one_line(scope_name(fact["scope"])),
        ]
        for fact in found["items"]
    ]
    state.show(found, lambda: table(["subject", "attribute", "value", "from", "until", "source", "scope"], rows))
