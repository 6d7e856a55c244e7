"""Settings: the only reader of the environment.

Strength, upwards: default, `$REVERIE_HOME/config.toml`, the workspace's own `config.toml`, environment.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from config.data_directory import NoDataDirectory, find_data_directory
from config.declared import Secret, declare, list_declared
from config.paths import WORKSPACE_ID, HomePaths

ENVIRONMENT_PREFIX = "REVERIE_"
HOME = Path("~/.reverie")
NO_SECRET = Secret("")
# Editors of Windows put it before the first line; it is not TOML.
BYTE_ORDER_MARK = "\ufeff"
# The model that follows the languages of a workspace.
AUTO = "auto"

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - of a server, never of a client


class SettingsError(Exception):
    """Say which setting cannot be taken, where it stands, and what was probably meant."""


class UnreadableSettings(SettingsError):
    """Say why a file of settings cannot be read at all."""


class HomeUnknown(SettingsError):
    """Say why the environment does not name the data directory."""


@dataclass(frozen=True)
class Settings:
    """Every setting with its default and its line of help."""

    home: Path = declare(HOME, "The folder that holds everything. Environment only.")
    host: str = declare("127.0.0.1", "The address that the web server binds to.")
    port: int = declare(7077, "The port that the web server binds to.", least=1, most=65535)
    behind_proxy: str = declare(
        "",
        "The address of the proxy that ends TLS before the web server; it alone is believed about clients.",
        pattern=r"([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)?",
    )
    public_url: str = declare(
        "", "The address under which people reach a server behind a proxy.", pattern=r"(https://[^/?#@\s]+/?)?"
    )
    workspace: str = declare(
        "default", "The workspace that commands use when none is named.", pattern=WORKSPACE_ID.pattern
    )
    workspace_split: Literal["none", "clone", "worktree"] = declare(
        "none",
        "What gets a workspace of its own though it shares a git remote; a .reverie.toml may differ.",
        choices=("none", "clone", "worktree"),
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = declare(
        "INFO", "The least severe messages that the logs keep.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    web_threads: int = declare(8, "Threads that answer HTTP requests.", least=2, most=64)
    worker_processes: int = declare(1, "Processes that digest memories, each in two threads.", least=1, most=32)
    idle_exit_min: float = declare(
        0.0, "Minutes without a request after which the stack stops by itself; 0 means never.", least=0, most=10080
    )
    encoder_threads: int = declare(1, "ONNX Runtime threads of each process that encodes.", least=1, most=64)
    embedding_model: str = declare(
        AUTO,
        "The sentence-transformers model, by name or path, or `auto` for one of a workspace's languages; changing it "
        "embeds everything again.",
        pattern=r"(?s:.+)",
    )
    store: Secret = declare(
        NO_SECRET,
        "The address of a PostgreSQL database for the store, postgresql://…; empty means files under the home. "
        "Environment only.",
        pattern=r"(postgres(ql)?://[^@\s]+(@[^@\s]+)?)?",
    )
    queue_url: str = declare(
        "", "A Redis address for the queue; empty means a SQLite file under the home.", pattern=r"(rediss?://.+)?"
    )
    limit_requests: int = declare(
        1200, "Requests that a person's token may send in a minute; 0 means any number.", least=0
    )
    limit_bytes: int = declare(
        64 * 1024 * 1024, "Bytes that a person's token may send in a minute; 0 means any number.", least=0
    )
    limit_queue: int = declare(
        20_000, "Work items waiting in a workspace past which people's writes are put off; 0 means any number.", least=0
    )
    oidc_issuer: str = declare(
        "",
        "The OpenID Connect provider that signs people in to the dashboard; empty means none.",
        pattern=r"(https?://.+)?",
    )
    oidc_client_id: str = declare("", "The name under which the provider knows this Reverie.")
    oidc_client_secret: Secret = declare(
        NO_SECRET, "The secret that goes with that name, never shown and never logged. Environment only."
    )
    vectors: str = declare(
        "",
        "Where vectors, lexical segments and snapshots lie: `s3://BUCKET/PREFIX`; empty means under the home.",
        pattern=r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?)?",
    )
    llm_url: str = declare(
        "", "An OpenAI-compatible endpoint that jobs may ask; empty means none is called.", pattern=r"(https?://.+)?"
    )
    llm_model: str = declare("", "The model that the endpoint is asked for, by its name there.")
    llm_api_key: Secret = declare(NO_SECRET, "The endpoint's key, never shown and never logged. Environment only.")
    llm_daily_tokens: int = declare(50_000, "Tokens that the jobs of a workspace may spend in a day (UTC).", least=0)
    busy_timeout_ms: int = declare(
        5000, "How long a write waits for another writer before it answers 503.", least=10, most=60000
    )
    lease_s: int = declare(120, "Seconds after which an unfinished claim goes to another worker.", least=2, most=3600)
    backoff_s: float = declare(
        2.0, "Seconds before a failed stage is tried again; doubles with each try.", least=0.01, most=600
    )
    sweep_interval_s: int = declare(30, "Seconds between sweeps for lost messages and dead leases.", least=1, most=30)
    segment_tail_rows: int = declare(512, "Writes after which the lexical segment is built anew.", least=1, most=20000)
    segment_interval_s: int = declare(
        300, "Seconds after which fewer writes than that are folded in as well.", least=1, most=86400
    )
    vectors_interval_s: int = declare(900, "Seconds between compactions of the vector index.", least=1, most=86400)
    dense_exact_rows: int = declare(
        200_000, "Vectors up to which dense search is exact and in memory; beyond, LanceDB searches.", least=0
    )
    review: bool = declare(default=False, help="Doubtful memories wait for review instead of being turned away.")
    incognito: bool = declare(default=False, help="Nothing that is said is stored; recall goes on.")
    recall_budget_ms: int = declare(250, "A recall's deadline when the request names none.", least=1, most=10000)
    hook_budget_ms: int = declare(300, "A hook's deadline; past it the agent gets nothing.", least=10, most=2000)
    hook_max_chars: int = declare(
        4000, "The longest context block that a hook hands to an agent.", least=200, most=10000
    )
    lesson_guard: Literal["off", "ask", "deny"] = declare(
        "ask",
        "What a critical lesson does before a command or file that it names: have the user asked, or deny it.",
        choices=("off", "ask", "deny"),
    )
    lesson_holdout: float = declare(
        0.1, "The share of lessons, never critical ones, withheld to learn whether they help.", least=0, most=0.5
    )
    hooks: bool = declare(default=True, help="Hosts' hooks are answered and noted at all.")
    hook_recall: bool = declare(default=True, help="Hooks tell agents what is known.")
    journal: bool = declare(default=True, help="What agents do is noted, and what it came to is kept.")
    capture: Literal["off", "suggest", "on"] = declare(
        "on",
        "What people say is read for what lasts: not at all, into the inbox, or into memory.",
        choices=("off", "suggest", "on"),
    )
    personal: bool = declare(default=True, help="What is known about you is told, and kept for every workspace.")
    write_tools: bool = declare(default=True, help="Agents may store and change memories with their tools.")
    read_only: bool = declare(default=False, help="Nothing is stored or changed, whoever asks; recall goes on.")
    trace: bool = declare(default=False, help="Hook runs keep why each memory was told or left out.")

    @property
    def paths(self) -> HomePaths:
        """Return the layout of the home."""
        return HomePaths(self.home.expanduser().absolute())

    @property
    def store_place(self) -> str:
        """Return which database on which host holds the store, without who comes in by what; "" for files."""
        return re.sub(r"//[^/]*@|\?.*", lambda found: "//" if found[0].startswith("//") else "", self.store.reveal())

    @property
    def reachable_host(self) -> str:
        """Return the address at which the server can be called: what a server binds to, no client always can."""
        return _ANY_ADDRESS.get(self.host, self.host)

    @property
    def is_exposed(self) -> bool:
        """Tell whether others than this machine's own programs can reach the server."""
        return bool(self.behind_proxy) or self.host.lower() not in LOOPBACK_HOSTS

    @property
    def url(self) -> str:
        """Return the base URL at which the server can be called."""
        host = self.reachable_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


# In their order.
SETTINGS = list_declared(Settings)

# Only these may differ between workspaces: the others belong to a process that serves all of them.
WORKSPACE_SETTINGS = frozenset(
    {
        *("recall_budget_ms", "hook_budget_ms", "hook_max_chars", "lesson_guard", "lesson_holdout", "review"),
        *("incognito", "hooks", "hook_recall", "journal", "capture", "personal", "write_tools", "read_only", "trace"),
    }
)

# What a workspace does and does not do, as `reverie status` tells it.
SWITCHES = ("hooks", "hook_recall", "journal", "capture", "personal", "write_tools", "read_only", "incognito", "trace")

# S3's own variables by which clients find a server that is not Amazon's.
STORAGE_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")

# Where the home is cannot stand in it, and a file is copied and shown more easily than an environment.
ENVIRONMENT_ONLY = ("home", "store", "llm_api_key", "oidc_client_secret")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting's effective value and where it comes from."""

    name: str
    value: Any
    origin: str
    help: str


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """What a workspace's own `config.toml` says, and where it stands, as a person looks for it."""

    text: str
    place: str


def load_settings(environment: Mapping[str, str] | None = None, own: WorkspaceConfig | None = None) -> Settings:
    """Read the effective settings, of a workspace by its own; raise SettingsError for an unknown or unusable one."""
    return validate(*_layers(environment, own))


def environment_workspace(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the workspace that the environment names; unlike the setting, it goes before a folder's own word."""
    return _from_environment(os.environ if environment is None else environment).get("workspace")


def environment_incognito(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the environment makes every request of this process incognito, in addition to the settings."""
    given = _from_environment(os.environ if environment is None else environment).get("incognito", False)
    try:
        return bool(SETTINGS["incognito"].parse(given))
    except ValueError as error:
        raise SettingsError(f"environment: incognito: {error}") from error


def environment_session(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the session of the agent that started this process, where its host names it: Claude Code does."""
    return (os.environ if environment is None else environment).get("CLAUDE_CODE_SESSION_ID") or None


def environment_allows_http(environment: Mapping[str, str] | None = None) -> bool:
    """Tell whether object storage may be spoken to without TLS: only where its endpoint says so itself."""
    found = os.environ if environment is None else environment
    endpoint = next((found[name] for name in STORAGE_ENDPOINTS if found.get(name)), "")
    return endpoint.startswith("http://")


def environment_with(changes: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with some variables changed, to read settings from."""
    return {**os.environ, **changes}


def environment_encoding() -> str | None:
    """Return the encoding that the environment names for terminals: an isolated Python does not look for it."""
    return os.environ.get("PYTHONIOENCODING", "").partition(":")[0] or None


def forget_workspace_variable() -> None:
    """Drop the workspace that the environment of a server names: each request names its own."""
    os.environ.pop(f"{ENVIRONMENT_PREFIX}WORKSPACE", None)


def environment_of(paths: HomePaths) -> dict[str, str]:
    """Return this process's environment with a home named in it, whether or not the environment names one."""
    return environment_with({f"{ENVIRONMENT_PREFIX}HOME": str(paths.root)})


def explain_settings(
    environment: Mapping[str, str] | None = None, own: WorkspaceConfig | None = None
) -> list[SettingOrigin]:
    """List every setting with its effective value and the place that decided it."""
    values, origins = _layers(environment, own)
    settings = validate(values, origins)
    return [
        SettingOrigin(name, getattr(settings, name), origins.get(name, "default"), setting.help)
        for name, setting in SETTINGS.items()
    ]


def _layers(
    environment: Mapping[str, str] | None, own: WorkspaceConfig | None
) -> tuple[dict[str, Any], dict[str, str]]:
    variables = dict(os.environ if environment is None else environment)
    env = _from_environment(variables)
    try:
        home = find_data_directory(variables)
    except NoDataDirectory as error:
        raise HomeUnknown(str(error)) from error
    env |= {"home": home} if "home" in env else {}
    paths = HomePaths(Path(home))
    layers: list[tuple[str, dict[str, Any]]] = [(str(paths.config), _read_toml(paths.config))]
    refuse_environment_only(layers[0][1], paths.config)
    if own is not None:
        layers.append((own.place, _parse_workspace_config(own)))
    layers.append(("environment", env))
    values: dict[str, Any] = {"home": home}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        _refuse_unknown(layer, origin)
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    return values, origins


def check_workspace_config(own: WorkspaceConfig) -> None:
    """Raise SettingsError, UnreadableSettings for what is no TOML, where a workspace's own settings cannot be taken."""
    values = _parse_workspace_config(own)
    validate(values, dict.fromkeys(values, own.place))


def _parse_workspace_config(own: WorkspaceConfig) -> dict[str, Any]:
    values = parse_toml(own.text, own.place)
    _refuse_unknown(values, own.place)
    for name in values:
        if name not in WORKSPACE_SETTINGS:
            allowed = ", ".join(sorted(WORKSPACE_SETTINGS))
            raise SettingsError(f"{own.place}: {name} cannot differ between workspaces; only {allowed} can")
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and value != ""
    }


def _read_toml(file: Path) -> dict[str, Any]:
    return parse_toml(read_text(file), str(file))


def read_text(file: Path) -> str:
    """Return the text of a file of settings, "" where there is none; raise UnreadableSettings where it is none."""
    try:
        # As it stands: line ends are the owner's.
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UnreadableSettings(f"{file}: not UTF-8 (at line {line}): {error}") from error
    except OSError as error:
        raise UnreadableSettings(f"{file}: {error.strerror or error}") from error


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Return what settings say that stand in a place; raise UnreadableSettings for what is no TOML."""
    if not text:
        return {}
    # Most homes have no such file.
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except ValueError as error:
        raise UnreadableSettings(f"{place}: {error}") from error
    except RecursionError as error:
        raise UnreadableSettings(f"{place}: its values are nested too deeply") from error


def _refuse_unknown(values: Mapping[str, Any], origin: str) -> None:
    for name in values:
        if name in SETTINGS:
            continue
        import difflib

        near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        shown = f"{ENVIRONMENT_PREFIX}{name.upper()}" if origin == "environment" else name
        raise SettingsError(f"{origin}: unknown setting {shown}{hint}")


def refuse_environment_only(values: Mapping[str, Any], file: Path) -> None:
    """Raise SettingsError where a file says what only the environment may."""
    for name in ENVIRONMENT_ONLY:
        if name in values:
            raise SettingsError(f"{file}: {name} can only be set by {ENVIRONMENT_PREFIX}{name.upper()}")


def validate(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    """Return the settings; raise SettingsError, which tells where it stands, for a value that cannot be taken."""
    _refuse_unknown(values, "settings")
    taken = {}
    for name, value in values.items():
        try:
            taken[name] = SETTINGS[name].parse(value)
        except ValueError as error:
            raise SettingsError(f"{origins.get(name, 'settings')}: {name}: {error}") from error
    return Settings(**taken)
