"""Build the default encoders in the user's cache, when Reverie is installed or connected to agents."""

import click

from web.cli.render import plain, show_waiting
from web.cli.state import State


def fill_encoder_cache(state: State) -> list[str]:
    """Build the encoders that these settings use, with a line for each; return the names of those in the cache."""
    from pipeline.errors import EncoderUnavailable
    from pipeline.services import encoder

    built = []
    for name in encoder.list_default_encoders(state.settings):
        try:
            with show_waiting(f"preparing the encoder {plain(name)}", quiet=state.json):
                if encoder.fill_encoder_cache(name):
                    built.append(name)
        except EncoderUnavailable as error:
            click.echo(f"{plain(name)} could not be prepared: {error}. A worker tries it again.", err=True)
    return built
