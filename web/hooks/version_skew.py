"""A hook that runs other code than this server: replace a server of older code, report another installation."""

from contextlib import suppress
from pathlib import Path

from flask import request

from config.settings import environment_with
from web.hooks.client import start
from web.http.call import Call
from web.http.contract import BUILD_HEADER
from web.version import INSTALLED_AT, INSTALLED_IN

# After a start or a replacement, the next replacement waits this long, whatever the builds: nothing makes a loop.
RESTART_S = 600.0


def compare_builds(call: Call) -> None:
    """Compare the build of a hook client, as `identify_build` names it, with that of this server."""
    build = request.headers.get(BUILD_HEADER, "")
    installed_at, _, folder = build.partition(" ")
    # A person of a team has an installation elsewhere.
    if not build or call.caller.person is not None or (installed_at, folder) == (INSTALLED_AT, INSTALLED_IN):
        return
    if folder == INSTALLED_IN:
        home = str(call.container.settings.paths.root)
        with suppress(OSError, ValueError):
            # It checks the builds again. Until the new server answers, prompts wait for it.
            start(home, environment_with({"REVERIE_HOME": home}), "--replace", again_s=RESTART_S)
        return
    program = Path(folder, "reverie")
    call.container.operations.record_error_once(
        "hooks",
        f"hooks run another installation of Reverie than the server: {program}. Run `reverie setup` to connect the"
        f" hooks to the server's, or `reverie down` and `{program} up --daemon` to use the hooks'",
    )
