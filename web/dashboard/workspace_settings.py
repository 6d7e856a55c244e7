"""Settings as a page tells of them: the value in force, where it comes from, and what would change it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from config.settings import (
    ENVIRONMENT_ONLY,
    ENVIRONMENT_PREFIX,
    WORKSPACE_SETTINGS,
    SettingOrigin,
    Settings,
    SettingsError,
    environment_of,
    environment_with,
    explain_settings,
)
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer

DEFAULT, ENVIRONMENT, UNKNOWN = "default", "environment", "unknown"


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting of the home: the value in force as text, and where that comes from.

    `origin` is `default`, `environment`, `unknown` or a file, whose `line` sets it; `waiting` is what the next start
    takes instead, if that differs.
    """

    name: str
    help: str
    value: str
    origin: str
    line: int | None
    waiting: str | None
    environment_only: bool

    @property
    def variable(self) -> str:
        """Return the variable of the environment that sets it."""
        return _variable(self.name)

    @property
    def is_plain(self) -> bool:
        """Tell whether nobody has set it."""
        return self.origin == DEFAULT and self.waiting is None


@dataclass(frozen=True, slots=True)
class Own:
    """A setting that a workspace may have of its own: the value in force, its own, and the one that the home gives it.

    What the environment has `fixed` no file changes; `least` and `most` are the limits of a number.
    """

    name: str
    help: str
    value: int | bool
    own: int | bool | None
    given: int | bool
    fixed: bool
    least: int | None
    most: int | None

    @property
    def variable(self) -> str:
        """Return the variable of the environment that sets it."""
        return _variable(self.name)


@dataclass(frozen=True, slots=True)
class Told:
    """Every setting of a home and what one workspace may have of its own, or why a file of theirs cannot be taken."""

    home: tuple[Shown, ...]
    own: Mapping[str, Own]
    problem: str | None


def explain_for_page(container: WebContainer, workspace_id: str) -> Told:
    """Tell of every setting, as it is in force now."""
    home, problem = _explained(container, None)
    mine, own_problem = _explained(container, workspace_id)
    in_force = container.workspace(workspace_id).settings
    file = str(container.settings.paths.workspace(workspace_id).config)
    return Told(
        tuple(_shown(container.settings, one) for name, one in home.items() if name not in WORKSPACE_SETTINGS),
        {name: _own(in_force, home[name], mine[name], file) for name in home if name in WORKSPACE_SETTINGS},
        problem or own_problem,
    )


def _explained(container: WebContainer, workspace_id: str | None) -> tuple[dict[str, SettingOrigin], str | None]:
    try:
        found = explain_settings(environment_of(container.settings.paths), workspace_id)
    except SettingsError as error:
        running = {
            name: SettingOrigin(name, getattr(container.settings, name), UNKNOWN, field.description or "")
            for name, field in Settings.model_fields.items()
        }
        return running, str(error)
    return {one.name: one for one in found}, None


def _shown(running: Settings, found: SettingOrigin) -> Shown:
    value = getattr(running, found.name)
    origin = found.origin
    if found.name == "home":
        # The explanation was given this home, wherever it came from.
        origin = ENVIRONMENT if _variable("home") in environment_with({}) else DEFAULT
        waits = False
    else:
        waits = found.value != value
    return Shown(
        found.name,
        found.help,
        _text(value),
        origin,
        None if origin in (DEFAULT, ENVIRONMENT, UNKNOWN) else _line(Path(origin), found.name),
        _text(found.value) if waits else None,
        found.name in ENVIRONMENT_ONLY,
    )


def _own(in_force: Settings, home: SettingOrigin, mine: SettingOrigin, file: str) -> Own:
    limits = Settings.model_fields[home.name].metadata
    return Own(
        home.name,
        home.help,
        getattr(in_force, home.name),
        mine.value if mine.origin == file else None,
        home.value,
        mine.origin == ENVIRONMENT,
        _limit(limits, "ge"),
        _limit(limits, "le"),
    )


def _limit(limits: list[Any], name: str) -> int | None:
    return next((getattr(one, name) for one in limits if hasattr(one, name)), None)


def _text(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "set, never shown" if value.get_secret_value() else "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    # An address may hold a password.
    return mask(str(value)) or "empty"


def _line(file: Path, name: str) -> int | None:
    setting = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, start=1) if setting.match(line)), None)


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"
