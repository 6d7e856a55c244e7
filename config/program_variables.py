"""Select the environment variables for other programs of Reverie: background server, service, host programs."""

from collections.abc import Mapping
from pathlib import Path

from config.data_directory import VARIABLE, NoDataDirectory, find_data_directory
from config.settings import ENVIRONMENT_PREFIX, SETTINGS, WORKSPACE_SETTINGS, Settings, environment_with, load_settings

# Variables that a background server gets from the shell that starts it. That shell belongs to one project, and the
# server serves all projects until it stops. docs/reference/settings.md lists them.
NAMES = frozenset(
    {
        *("HOME", "USER", "LOGNAME", "PATH", "TZ", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE"),
        *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "PGPASSFILE", "PGPASSWORD"),
        *("TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM"),
    }
)
PREFIXES = ("LC_", "XDG_", "AWS_", "PGSSL", "HF_", "OMP_", "OPENBLAS_", "MKL_")
# A request names its workspace; workspace settings must not come from the shell of one project.
SHARED_SETTINGS = frozenset(
    f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in SETTINGS if name not in WORKSPACE_SETTINGS | {"workspace"}
)


def select_daemon_variables(environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the environment variables for a server in the background, with its data directory."""
    shared = {name: value for name, value in environment.items() if _is_shared(name)}
    return shared | {VARIABLE: str(root)}


def list_workspace_variables(environment: Mapping[str, str]) -> list[str]:
    """List the environment variables that would set a workspace's setting for all workspaces."""
    return sorted(
        name
        for setting in WORKSPACE_SETTINGS
        if environment.get(name := f"{ENVIRONMENT_PREFIX}{setting.upper()}", "") != ""
    )


def list_moving_variables(settings: Settings) -> dict[str, str]:
    """Return the variables that a program needs to use the data directory and the server of these settings."""
    home = {VARIABLE: str(settings.paths.root)}
    # The program reads config.toml in the data directory itself.
    stored = load_settings(home)
    moved = {name: str(getattr(settings, name)) for name in ("host", "port")}
    return (home if settings.paths.root != _usual_home() else {}) | {
        f"{ENVIRONMENT_PREFIX}{name.upper()}": value
        for name, value in moved.items()
        if value != str(getattr(stored, name))
    }


def _usual_home() -> Path | None:
    try:
        return Path(find_data_directory(environment_with({VARIABLE: ""})))
    except NoDataDirectory:
        return None


def _is_shared(name: str) -> bool:
    upper = name.upper()
    return name in SHARED_SETTINGS or upper in NAMES or upper.startswith(PREFIXES)
