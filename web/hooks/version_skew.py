"""A hook that runs other code than this server: replace a server of older code, report another installation."""

from contextlib import suppress
from pathlib import Path

from config.settings import environment_with
from pipeline.bootstrap.web import WebContainer
from web.hooks.client import start
from web.version import BUILD, is_same_installation

# After a start or a replacement, the next replacement waits this long, whatever the builds: nothing makes a loop.
RESTART_S = 600.0


def compare_builds(container: WebContainer, client: str) -> None:
    """Compare the build and the Python of a hook client, as it names them, with those of this server."""
    build, _, python = client.partition(" ")
    if not build or build == BUILD:
        return
    if is_same_installation(build, BUILD):
        home = str(container.settings.paths.root)
        # It checks the builds again. Until the new server answers, prompts wait for it.
        with suppress(OSError, ValueError):
            start(home, environment_with({"REVERIE_HOME": home}), "--replace", again_s=RESTART_S)
        return
    program = Path(python).with_name("reverie")
    container.operations.record_error_once(
        "hooks",
        f"hooks run another installation of Reverie than the server: {program}. Run `reverie setup` to connect the"
        f" hooks to the server's, or `reverie down` and `{program} up --daemon` to use the hooks'",
    )
