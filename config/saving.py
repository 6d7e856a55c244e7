"""Writing settings into a `config.toml`: one value changes, and comments and layout stay."""

from config.paths import HomePaths
from config.settings import (
    BYTE_ORDER_MARK,
    WorkspaceConfig,
    check_workspace_config,
    parse_toml,
    read_text,
    refuse_environment_only,
    validate,
)
from config.workspace_configs import WorkspaceConfigs, write_config


def save_setting(paths: HomePaths, name: str, value: object) -> None:
    """Set one value in the home's config.toml; the others stay, and so do comments and layout."""
    place = str(paths.config)
    text = _edit(read_text(paths.config), place, name, value)
    values = parse_toml(text, place)
    refuse_environment_only(values, paths.config)
    validate(values, dict.fromkeys(values, place))
    write_config(paths.config, text)


def save_workspace_setting(configs: WorkspaceConfigs, workspace_id: str, name: str, value: object | None) -> None:
    """Set one value of a workspace's own settings, or take it out with None; all else stays, comments too."""
    place = configs.place(workspace_id)

    def change(text: str) -> str:
        changed = _edit(text, place, name, value)
        check_workspace_config(WorkspaceConfig(changed, place))
        return changed

    configs.edit(workspace_id, change)


def _edit(text: str, place: str, name: str, value: object | None) -> str:
    """Return settings with another value for a top-level key, or without it."""
    # Loaded by who writes only: every command reads settings.
    import tomlkit

    parse_toml(text, place)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    document = tomlkit.parse(text.removeprefix(mark))
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]
    return mark + tomlkit.dumps(document)
