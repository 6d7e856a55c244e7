"""Settings: the only reader of the environment.

Strength, upwards: default, `$REVERIE_HOME/config.toml`, the workspace's `config.toml`, environment.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, ValidationError

from config.paths import WORKSPACE_ID, HomePaths, is_workspace_id

ENVIRONMENT_PREFIX = "REVERIE_"

WorkspaceId = Annotated[str, StringConstraints(pattern=rf"^{WORKSPACE_ID.pattern}$")]


class SettingsError(Exception):
    """Say which setting cannot be taken, where it stands, and what was probably meant."""


class UnreadableSettings(SettingsError):
    """Say why a file of settings cannot be read at all."""


class Settings(BaseModel):
    """Every setting with its default and its line of help."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(
        default=Path("~/.reverie"),
        description="The folder that holds everything. Environment only.",
    )
    host: str = Field(default="127.0.0.1", description="The address that the web server binds to.")
    port: int = Field(default=7077, ge=1, le=65535, description="The port that the web server binds to.")
    workspace: WorkspaceId = Field(default="default", description="The workspace that commands use when none is named.")
    workspace_split: Literal["none", "clone", "worktree"] = Field(
        default="none",
        description="What gets a workspace of its own though it shares a git remote; a .reverie.toml may differ.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="The least severe messages that the logs keep."
    )
    web_threads: int = Field(default=8, ge=2, le=64, description="Threads that answer HTTP requests.")
    worker_processes: int = Field(
        default=1, ge=1, le=32, description="Processes that digest memories, each in two threads."
    )
    idle_exit_min: float = Field(
        default=0,
        ge=0,
        le=10080,
        description="Minutes without a request after which the stack stops by itself; 0 means never.",
    )
    encoder_threads: int = Field(
        default=1, ge=1, le=64, description="ONNX Runtime threads of each process that encodes."
    )
    embedding_model: str = Field(
        default="all-MiniLM-L6-v2",
        min_length=1,
        description="The sentence-transformers model, by name or path; changing it embeds everything again.",
    )
    queue_url: str = Field(
        default="",
        pattern=r"^(rediss?://.+)?$",
        description="A Redis address for the queue; empty means a SQLite file under the home.",
    )
    llm_url: str = Field(
        default="",
        pattern=r"^(https?://.+)?$",
        description="An OpenAI-compatible endpoint that jobs may ask; empty means none is called.",
    )
    llm_model: str = Field(default="", description="The model that the endpoint is asked for, by its name there.")
    llm_api_key: SecretStr = Field(
        default=SecretStr(""), description="The endpoint's key, never shown and never logged. Environment only."
    )
    llm_daily_tokens: int = Field(
        default=50_000, ge=0, description="Tokens that the jobs of a workspace may spend in a day (UTC)."
    )
    llm_timeout_s: float = Field(
        default=20.0, ge=0.1, le=120, description="Seconds after which a call is given up and a job goes on without."
    )
    busy_timeout_ms: int = Field(
        default=5000,
        ge=10,
        le=60000,
        description="How long a write waits for another writer before it answers 503.",
    )
    lease_s: int = Field(
        default=120,
        ge=2,
        le=3600,
        description="Seconds after which an unfinished claim goes to another worker.",
    )
    backoff_s: float = Field(
        default=2.0,
        ge=0.01,
        le=600,
        description="Seconds before a failed stage is tried again; doubles with each try.",
    )
    sweep_interval_s: int = Field(
        default=30, ge=1, le=30, description="Seconds between sweeps for lost messages and dead leases."
    )
    segment_tail_rows: int = Field(
        default=512, ge=1, le=20000, description="Writes after which the lexical segment is built anew."
    )
    segment_interval_s: int = Field(
        default=300,
        ge=1,
        le=86400,
        description="Seconds after which fewer writes than that are folded in as well.",
    )
    vectors_interval_s: int = Field(
        default=900, ge=1, le=86400, description="Seconds between compactions of the vector index."
    )
    dense_exact_rows: int = Field(
        default=200_000,
        ge=0,
        description="Vectors up to which dense search is exact and in memory; beyond, LanceDB searches.",
    )
    review: bool = Field(default=False, description="Doubtful memories wait for review instead of being turned away.")
    incognito: bool = Field(default=False, description="Nothing that is said is stored; recall goes on.")
    recall_budget_ms: int = Field(
        default=250, ge=1, le=10000, description="A recall's deadline when the request names none."
    )
    hook_budget_ms: int = Field(
        default=300, ge=10, le=2000, description="A hook's deadline; past it the agent gets nothing."
    )
    hook_max_chars: int = Field(
        default=4000, ge=200, le=10000, description="The longest context block that a hook hands to an agent."
    )

    @property
    def paths(self) -> HomePaths:
        """Return the layout of the home."""
        return HomePaths(self.home.expanduser().absolute())


# Only these may differ between workspaces: the others belong to a process that serves all of them.
WORKSPACE_SETTINGS = frozenset({"recall_budget_ms", "hook_budget_ms", "hook_max_chars", "review", "incognito"})

# Where the home is cannot stand in it, and a file is copied and shown more easily than an environment.
ENVIRONMENT_ONLY = ("home", "llm_api_key")


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A setting's effective value and where it comes from."""

    name: str
    value: Any
    origin: str
    help: str


def load_settings(environment: Mapping[str, str] | None = None, workspace_id: str | None = None) -> Settings:
    """Read the effective settings; raise SettingsError for an unknown or unusable one."""
    return _validate(*_layers(environment, workspace_id))


def environment_workspace(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the workspace that the environment names; unlike the setting, it goes before a folder's own word."""
    return _from_environment(os.environ if environment is None else environment).get("workspace")


def environment_with(changes: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with some variables changed, to read settings from."""
    return {**os.environ, **changes}


def environment_of(paths: HomePaths) -> dict[str, str]:
    """Return this process's environment with a home named in it, whether or not the environment names one."""
    return environment_with({f"{ENVIRONMENT_PREFIX}HOME": str(paths.root)})


def list_moving_variables(settings: Settings) -> dict[str, str]:
    """Return the variables without which a program would look for another home or server than these settings name."""
    home = {f"{ENVIRONMENT_PREFIX}HOME": str(settings.paths.root)}
    # What stands in the home's own file is found there.
    stored = load_settings(home)
    moved = {name: str(getattr(settings, name)) for name in ("host", "port")}
    return (home if settings.paths.root != Settings().paths.root else {}) | {
        f"{ENVIRONMENT_PREFIX}{name.upper()}": value
        for name, value in moved.items()
        if value != str(getattr(stored, name))
    }


def explain_settings(
    environment: Mapping[str, str] | None = None, workspace_id: str | None = None
) -> list[SettingOrigin]:
    """List every setting with its effective value and the place that decided it."""
    values, origins = _layers(environment, workspace_id)
    settings = _validate(values, origins)
    return [
        SettingOrigin(name, getattr(settings, name), origins.get(name, "default"), field.description or "")
        for name, field in Settings.model_fields.items()
    ]


def save_setting(paths: HomePaths, name: str, value: object) -> None:
    """Set one value in the home's config.toml; the others stay, and so do comments and layout."""
    text = _edit(paths.config, name, value)
    values = _parse(text, paths.config)
    _refuse_environment_only(values, paths.config)
    _save(paths.config, text, values)


def save_workspace_setting(paths: HomePaths, workspace_id: str, name: str, value: object | None) -> None:
    """Set one value in a workspace's own config.toml, or take it out with None; all else stays, comments too."""
    file = paths.workspace(workspace_id).config
    text = _edit(file, name, value)
    _save(file, text, _workspace_layer(_parse(text, file), file))


def _edit(file: Path, name: str, value: object | None) -> str:
    """Return the file's text with another value for a top-level key, or without it."""
    # Loaded by who writes only: every command reads settings.
    import tomlkit

    text = _read_text(file)
    _parse(text, file)
    document = tomlkit.parse(text)
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]
    return tomlkit.dumps(document)


def _save(file: Path, text: str, values: Mapping[str, Any]) -> None:
    _validate(values, dict.fromkeys(values, str(file)))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8", newline="")
    draft.replace(file)


def _layers(environment: Mapping[str, str] | None, workspace_id: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    env = _from_environment(os.environ if environment is None else environment)
    home = Path(env.get("home", Settings.model_fields["home"].default))
    paths = HomePaths(home.expanduser().absolute())
    layers: list[tuple[str, dict[str, Any]]] = [(str(paths.config), _read_toml(paths.config))]
    _refuse_environment_only(layers[0][1], paths.config)
    if workspace_id is not None and is_workspace_id(workspace_id):
        file = paths.workspace(workspace_id).config
        layers.append((str(file), _workspace_layer(_read_toml(file), file)))
    layers.append(("environment", env))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        _refuse_unknown(layer, origin)
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    return values, origins


def _workspace_layer(values: dict[str, Any], file: Path) -> dict[str, Any]:
    _refuse_unknown(values, str(file))
    for name in values:
        if name not in WORKSPACE_SETTINGS:
            allowed = ", ".join(sorted(WORKSPACE_SETTINGS))
            raise SettingsError(f"{file}: {name} cannot differ between workspaces; only {allowed} can")
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and value != ""
    }


def _read_toml(file: Path) -> dict[str, Any]:
    return _parse(_read_text(file), file)


def _read_text(file: Path) -> str:
    try:
        # As it stands: line ends are the owner's.
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSettings(f"{file}: {error}") from error


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableSettings(f"{file}: {error}") from error


def _refuse_unknown(values: Mapping[str, Any], origin: str) -> None:
    for name in values:
        if name in Settings.model_fields:
            continue
        near = difflib.get_close_matches(name, Settings.model_fields, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        shown = f"{ENVIRONMENT_PREFIX}{name.upper()}" if origin == "environment" else name
        raise SettingsError(f"{origin}: unknown setting {shown}{hint}")


def _refuse_environment_only(values: Mapping[str, Any], file: Path) -> None:
    for name in ENVIRONMENT_ONLY:
        if name in values:
            raise SettingsError(f"{file}: {name} can only be set by {ENVIRONMENT_PREFIX}{name.upper()}")


def _validate(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    _refuse_unknown(values, "settings")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0])
        raise SettingsError(f"{origins.get(name, 'settings')}: {name}: {first['msg']}") from error
