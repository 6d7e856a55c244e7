"""Settings, and the only reader of the environment.

Later sources override earlier ones: default, `$REVERIE_HOME/config.toml`, the workspace's `config.toml`, environment.
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
from config.toml_files import SettingsError, parse_toml, read_text

ENVIRONMENT_PREFIX = "REVERIE_"
HOME = Path("~/.reverie")
NO_SECRET = Secret("")
# The value that chooses a model by the languages of a workspace.
AUTO = "auto"

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - of a server, never of a client


class UnknownDataDirectory(SettingsError):
    """Report why the environment does not name the data directory."""


@dataclass(frozen=True)
class Settings:
    """Every setting with its default and its line of help."""

    home: Path = declare(HOME, "Data directory with all of Reverie's files. Set by the environment only.")
    host: str = declare("127.0.0.1", "Address that the web server listens on.")
    port: int = declare(7077, "Port that the web server listens on.", least=1, most=65535)
    behind_proxy: str = declare(
        "",
        "Address of the reverse proxy that terminates TLS. The web server trusts the client address that it forwards.",
        pattern=r"([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)?",
    )
    public_url: str = declare(
        "", "Public HTTPS URL of a server behind a reverse proxy.", pattern=r"(https://[^/?#@\s]+/?)?"
    )
    workspace: str = declare(
        "default", "Workspace that commands use if no other is given.", pattern=WORKSPACE_ID.pattern
    )
    workspace_split: Literal["none", "clone", "worktree"] = declare(
        "none",
        "Give each clone or each worktree its own workspace although they share a git remote. A project's "
        ".reverie.toml takes precedence.",
        choices=("none", "clone", "worktree"),
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = declare(
        "INFO", "Minimum severity of log messages.", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    web_threads: int = declare(8, "Number of threads that answer HTTP requests.", least=2, most=64)
    worker_processes: int = declare(1, "Number of worker processes. Each runs two threads.", least=1, most=32)
    idle_exit_min: float = declare(
        0.0, "Minutes without a request after which the server stops; 0 means never.", least=0, most=10080
    )
    encoder_threads: int = declare(1, "ONNX Runtime threads per process that computes embeddings.", least=1, most=64)
    embedding_model: str = declare(
        AUTO,
        "Embedding model of sentence-transformers, by name or path. `auto` chooses one for the languages of "
        "each workspace. A change embeds all memories again.",
        pattern=r"(?s:.+)",
    )
    reranker: str = declare(
        "",
        "CrossEncoder model of sentence-transformers, by name or path, that reorders the first 30 results. "
        "Empty means none.",
    )
    store: Secret = declare(
        NO_SECRET,
        "URL of a PostgreSQL database for the store (postgresql://…). Empty means files in the data "
        "directory. Set by the environment only.",
        pattern=r"(postgres(ql)?://[^@\s]+(@[^@\s]+)?)?",
    )
    queue_url: str = declare(
        "",
        "URL of a Redis server for the job queue. Empty means a SQLite file in the data directory.",
        pattern=r"(rediss?://.+)?",
    )
    limit_requests: int = declare(1200, "Maximum number of requests per minute and token; 0 means no limit.", least=0)
    limit_bytes: int = declare(
        64 * 1024 * 1024, "Maximum number of bytes per minute that one token may send; 0 means no limit.", least=0
    )
    limit_queue: int = declare(
        20_000,
        "Maximum number of pending work items in a workspace before it answers writes with 429; 0 means no limit.",
        least=0,
    )
    oidc_issuer: str = declare(
        "",
        "URL of the OpenID Connect provider for dashboard sign-in. Empty means none.",
        pattern=r"(https?://.+)?",
    )
    oidc_client_id: str = declare("", "Client id of this server at the OpenID Connect provider.")
    oidc_client_secret: Secret = declare(
        NO_SECRET, "Client secret at the OpenID Connect provider. Never shown or logged. Set by the environment only."
    )
    vectors: str = declare(
        "",
        "Object storage for vectors, lexical segments and snapshots: `s3://BUCKET/PREFIX`. Empty means the "
        "data directory.",
        pattern=r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?)?",
    )
    llm_url: str = declare(
        "",
        "URL of an OpenAI-compatible API. Maintenance jobs send it memories; with `capture_llm`, capture sends it "
        "users' messages. Empty means no calls.",
        pattern=r"(https?://.+)?",
    )
    llm_model: str = declare("", "Model name to request from that API.")
    llm_api_key: Secret = declare(
        NO_SECRET, "API key of the language model. Never shown or logged. Set by the environment only."
    )
    llm_daily_tokens: int = declare(
        50_000, "Maximum number of tokens that the jobs of a workspace may use per day (UTC).", least=0
    )
    lease_s: int = declare(
        120, "Seconds after which an unfinished work item goes to another worker.", least=2, most=3600
    )
    backoff_s: float = declare(
        2.0,
        "Seconds before the first retry of a failed work item. The delay doubles with each retry.",
        least=0.01,
        most=600,
    )
    sweep_interval_s: int = declare(
        30, "Seconds between searches for lost queue messages and expired leases.", least=1, most=30
    )
    segment_tail_rows: int = declare(
        512, "Number of new memories after which the lexical index is rebuilt.", least=1, most=20000
    )
    segment_interval_s: int = declare(
        300, "Seconds after which the lexical index is rebuilt even for fewer new memories.", least=1, most=86400
    )
    review: bool = declare(default=False, help="Queue doubtful memories for review instead of rejecting them.")
    incognito: bool = declare(default=False, help="Store nothing from sessions; recall still works.")
    recall_budget_ms: int = declare(
        250, "Time limit of a recall in milliseconds, unless the request sets one.", least=1, most=10000
    )
    hook_budget_ms: int = declare(
        300, "Time limit of a hook in milliseconds. After it, the agent gets no memories.", least=10, most=2000
    )
    hook_max_chars: int = declare(
        4000, "Maximum number of characters that a hook adds to a prompt.", least=200, most=10000
    )
    lesson_guard: Literal["off", "ask", "deny"] = declare(
        "ask",
        "Action before a command or file that a critical lesson names: none (`off`), ask the user (`ask`), "
        "or block it (`deny`).",
        choices=("off", "ask", "deny"),
    )
    act_recall: Literal["off", "past", "rules", "on"] = declare(
        "past",
        "Lines before an edit or a command: none (`off`), what failed or was reverted here before (`past`), the rules "
        "that it breaks (`rules`), or both (`on`).",
        choices=("off", "past", "rules", "on"),
    )
    enabled: bool = declare(default=True, help="Answer and record hook events, and list MCP tools.")
    hook_recall: bool = declare(default=True, help="Add relevant memories to agents' prompts.")
    no_brief_roles: str = declare("", "Roles of subagents that get no brief, separated by spaces; `*` means all.")
    journal: bool = declare(default=True, help="Record what agents do and summarize each session.")
    capture: Literal["off", "suggest", "on"] = declare(
        "on",
        "Extract lasting statements from users' messages: never (`off`), into the review queue (`suggest`), "
        "or as memories (`on`).",
        choices=("off", "suggest", "on"),
    )
    sessions_mb: int = declare(500, "Megabytes of past sessions; your words are deleted last.", least=1, most=100_000)
    capture_llm: bool = declare(
        default=False,
        help="Send users' messages, the agent's answer before each, its tool calls, and related memories to `llm_url`, "
        "so that the model extracts the lasting statements. Otherwise capture sends nothing.",
    )
    personal: bool = declare(default=True, help="Remember facts about you and use them in all workspaces.")
    imports_in_prompts: bool = declare(default=True, help="Show imported documents, code and commits with prompts.")
    write_tools: bool = declare(default=True, help="Let agents store and change memories with MCP tools.")
    read_only: bool = declare(default=False, help="Reject every change to memories; recall still works.")

    @property
    def paths(self) -> HomePaths:
        """Return the paths of the data directory."""
        return HomePaths(self.home.expanduser().absolute())

    @property
    def store_place(self) -> str:
        """Return host and name of the store's database, without user and password; "" for files."""
        return re.sub(r"//[^/]*@|\?.*", lambda match: "//" if match[0].startswith("//") else "", self.store.reveal())

    @property
    def reachable_host(self) -> str:
        """Return a host name that clients can connect to; a wildcard address works only for the server."""
        return _ANY_ADDRESS.get(self.host, self.host)

    @property
    def is_exposed(self) -> bool:
        """Return whether other machines can reach the server."""
        return bool(self.behind_proxy) or self.host.lower() not in LOOPBACK_HOSTS

    @property
    def url(self) -> str:
        """Return the base URL at which the server can be called."""
        host = self.reachable_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


SETTINGS = list_declared(Settings)

# The settings that can differ between workspaces. The others belong to a process that serves all workspaces.
WORKSPACE_SETTINGS = frozenset(
    {
        *("recall_budget_ms", "hook_budget_ms", "hook_max_chars", "lesson_guard", "act_recall", "review"),
        *("incognito", "enabled", "hook_recall", "journal", "capture", "capture_llm", "personal", "write_tools"),
        *("read_only", "sessions_mb", "imports_in_prompts", "no_brief_roles"),
    }
)

SWITCHES = (  # Shown by `reverie status`.
    *("enabled", "hook_recall", "journal", "capture", "personal"),
    *("write_tools", "read_only", "incognito", "imports_in_prompts"),
)

# A file cannot say where it is itself, and a secret in a file is copied and shown more easily than in a variable.
ENVIRONMENT_ONLY = ("home", "store", "llm_api_key", "oidc_client_secret")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """The effective value of a setting and its source."""

    name: str
    value: Any
    origin: str
    help: str


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """The text of a workspace's settings file, and its path or table as shown to users."""

    text: str
    place: str


def load_settings(environment: Mapping[str, str] | None = None, own: WorkspaceConfig | None = None) -> Settings:
    """Read the effective settings, including a workspace's own; raise SettingsError for unknown or invalid settings."""
    return validate(*_layers(environment, own))


def environment_workspace() -> str | None:
    """Return the workspace that the environment names. Unlike the setting, it overrides the workspace of the folder."""
    return _from_environment(os.environ).get("workspace")


def environment_incognito(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the environment makes every request of this process incognito, in addition to the settings."""
    return _environment_switch("incognito", os.environ if environment is None else environment)


def environment_read_only() -> bool:
    """Return whether the environment makes every request of this process part of a read-only session."""
    return _environment_switch("read_only", os.environ)


def _environment_switch(name: str, environment: Mapping[str, str]) -> bool:
    setting_text = _from_environment(environment).get(name, False)
    try:
        return bool(SETTINGS[name].parse(setting_text))
    except ValueError as error:
        raise SettingsError(f"environment: {name}: {error}") from error


def environment_session() -> str | None:
    """Return the session of the agent that started this process, if its host names it (Claude Code does)."""
    return os.environ.get("CLAUDE_CODE_SESSION_ID") or None


def environment_with(changes: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with some variables changed."""
    return {**os.environ, **changes}


def forget_workspace_variable() -> None:
    """Remove the workspace variable from a server's environment: each request names its workspace."""
    os.environ.pop(f"{ENVIRONMENT_PREFIX}WORKSPACE", None)


def environment_of(paths: HomePaths) -> dict[str, str]:
    """Return this process's environment with `REVERIE_HOME` set to a data directory."""
    return environment_with({f"{ENVIRONMENT_PREFIX}HOME": str(paths.root)})


def explain_settings(
    environment: Mapping[str, str] | None = None, own: WorkspaceConfig | None = None
) -> list[SettingOrigin]:
    """List every setting with its effective value and its source."""
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
        raise UnknownDataDirectory(str(error)) from error
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
    """Raise SettingsError if a workspace's settings are invalid, UnreadableSettings if they are not TOML."""
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


def _refuse_unknown(values: Mapping[str, Any], origin: str) -> None:
    for name in values:
        if name in SETTINGS:
            continue
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}" if origin == "environment" else name
        import difflib

        near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SettingsError(f"{origin}: unknown setting {variable}{hint}")


def refuse_environment_only(values: Mapping[str, Any], file: Path) -> None:
    """Raise SettingsError if a file has a setting that only the environment can set."""
    for name in ENVIRONMENT_ONLY:
        if name in values:
            raise SettingsError(f"{file}: {name} can only be set by {ENVIRONMENT_PREFIX}{name.upper()}")


def validate(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    """Return the settings; raise SettingsError, with the source of the value, for an invalid value."""
    _refuse_unknown(values, "settings")
    parsed = {}
    for name, value in values.items():
        try:
            parsed[name] = SETTINGS[name].parse(value)
        except ValueError as error:
            raise SettingsError(f"{origins.get(name, 'settings')}: {name}: {error}") from error
    return Settings(**parsed)
