"""Edit files of settings: a text with every setting as a comment, and single values."""

from typing import Any

import click

from config.declared import Secret
from config.settings import (
    ENVIRONMENT_ONLY,
    SETTINGS,
    WORKSPACE_SETTINGS,
    Settings,
    load_settings,
    refuse_environment_only,
    validate,
)
from config.settings_edits import save_setting, save_workspace_setting
from config.toml_files import SettingsError, parse_toml, read_text
from config.workspace_configs import write_config
from pipeline.services.workspace_config import edit_config, explain_workspace, opened_configs

HEADER = "# Settings of {target}. Remove the # in front of a setting to change it; the value shown is the default.\n"


def edit_settings(settings: Settings, workspace_id: str | None) -> tuple[str, bool]:
    """Let the user edit the settings of a workspace, or of all with None; return the file and whether it changed.

    Raises SettingsError for invalid settings: the file is not changed then.
    """
    if workspace_id is not None:
        names = [name for name in SETTINGS if name in WORKSPACE_SETTINGS]
        target = f'workspace "{workspace_id}"'
        return edit_config(settings, workspace_id, lambda text: _edit_text(text, target, names))
    file = settings.paths.config
    text = read_text(file)
    names = [name for name in SETTINGS if name not in ENVIRONMENT_ONLY]
    edited = _edit_text(text, "all workspaces", names)
    if edited is None or edited == text:
        return str(file), False
    values = parse_toml(edited, str(file))
    refuse_environment_only(values, file)
    validate(values, dict.fromkeys(values, str(file)))
    settings.paths.ensure()
    write_config(file, edited)
    return str(file), True


def _edit_text(text: str, target: str, names: list[str]) -> str | None:
    """Open the editor; return the edited text, None if the user changed nothing."""
    template = add_missing_settings(text, target, names)
    edited = click.edit(template, extension=".toml")
    return None if edited is None or edited == template else edited


def add_missing_settings(text: str, target: str, names: list[str]) -> str:
    """Return settings with a comment for each setting that the text does not mention."""
    mentioned = {line.lstrip("# ").partition("=")[0].strip() for line in text.splitlines() if "=" in line}
    comments = [
        f"\n# {SETTINGS[name].help}\n# {name} = {format_toml(SETTINGS[name].default)}\n"
        for name in names
        if name not in mentioned
    ]
    head = text if text.strip() else HEADER.format(target=target)
    return head + ("" if head.endswith("\n") or not comments else "\n") + "".join(comments)


def format_toml(value: Any) -> str:
    """Return a value of a setting as TOML."""
    import tomlkit

    plain_value = value if isinstance(value, bool | int | float) else str(value)
    return str(tomlkit.item(plain_value).as_string())


def save_value(settings: Settings, workspace_id: str | None, name: str, text: str) -> tuple[str, Any, Any]:
    """Save a setting for a workspace, or for all with None; return the file, the value, and the effective value.

    Raises SettingsError for an unknown setting and for an invalid value.
    """
    value = _parse_value(name, text)
    if workspace_id is None:
        save_setting(settings.paths, name, value)
        return str(settings.paths.config), value, getattr(load_settings(), name)
    with opened_configs(settings) as configs:
        save_workspace_setting(configs, workspace_id, name, value)
        file = configs.place(workspace_id)
    effective = {setting.name: setting.value for setting in explain_workspace(settings, workspace_id)}
    return file, value, effective[name]


def _parse_value(name: str, text: str) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        import difflib

        similar = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
        hint = f"Did you mean {similar[0]}?" if similar else "`reverie config` lists all settings."
        raise SettingsError(f'There is no setting "{name}". {hint}')
    if name in ENVIRONMENT_ONLY or setting.type is Secret:
        raise SettingsError(
            f"Cannot save {name} in a file. Set it with the environment variable REVERIE_{name.upper()}."
        )
    try:
        return setting.parse(text)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from error
