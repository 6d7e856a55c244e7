"""Opening the dashboard."""

import click

from web.cli.command import Command, State, pass_state


@click.command(cls=Command)
@click.option("--print-url", is_flag=True, help="Print the link instead of opening a browser.")
@pass_state
def dashboard(state: State, *, print_url: bool) -> None:
    """Open the dashboard in the browser, by a link that works once within two minutes."""
    with state.client() as client:
        link = client.dashboard_link()
    if state.json:
        state.print_json(link)
    elif print_url or click.launch(link["url"]) != 0:
        click.echo(link["url"])
    else:
        click.echo("the dashboard opens in your browser")
