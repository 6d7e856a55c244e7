"""Write settings to a `config.toml`: change a value and keep comments and layout."""

from config.paths import HomePaths
from config.settings import WorkspaceConfig, check_workspace_config, refuse_environment_only, validate
from config.toml_files import BYTE_ORDER_MARK, parse_toml, read_text
from config.workspace_configs import WorkspaceConfigs, write_config


def save_setting(paths: HomePaths, name: str, value: object) -> None:
    """Set a value in the data directory's config.toml; keep other values, comments and layout."""
    source = str(paths.config)
    text = _edit(read_text(paths.config), source, name, value)
    values = parse_toml(text, source)
    refuse_environment_only(values, paths.config)
    validate(values, dict.fromkeys(values, source))
    write_config(paths.config, text)


def save_workspace_setting(configs: WorkspaceConfigs, workspace_id: str, name: str, value: object | None) -> None:
    """Set a value in a workspace's config.toml, or remove it with None; keep everything else, including comments."""
    source = configs.place(workspace_id)

    def change(text: str) -> str:
        changed = _edit(text, source, name, value)
        check_workspace_config(WorkspaceConfig(changed, source))
        return changed

    configs.edit(workspace_id, change)


def _edit(text: str, source: str, name: str, value: object | None) -> str:
    """Return the text of a settings file with a changed top-level key, or without the key."""
    # Imported here because every command reads settings and few write them.
    import tomlkit

    parse_toml(text, source)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    document = tomlkit.parse(text.removeprefix(mark))
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]
    return mark + tomlkit.dumps(document)
