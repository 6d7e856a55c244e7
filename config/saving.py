"""Writing settings into a `config.toml`: one value changes, and comments and layout stay."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.paths import HomePaths
from config.settings import check_workspace_layer, parse_toml, read_text, refuse_environment_only, validate


def save_setting(paths: HomePaths, name: str, value: object) -> None:
    """Set one value in the home's config.toml; the others stay, and so do comments and layout."""
    text = _edit(paths.config, name, value)
    values = parse_toml(text, paths.config)
    refuse_environment_only(values, paths.config)
    _save(paths.config, text, values)


def save_workspace_setting(paths: HomePaths, workspace_id: str, name: str, value: object | None) -> None:
    """Set one value in a workspace's own config.toml, or take it out with None; all else stays, comments too."""
    file = paths.workspace(workspace_id).config
    text = _edit(file, name, value)
    _save(file, text, check_workspace_layer(parse_toml(text, file), file))


def _edit(file: Path, name: str, value: object | None) -> str:
    """Return the file's text with another value for a top-level key, or without it."""
    # Loaded by who writes only: every command reads settings.
    import tomlkit

    text = read_text(file)
    parse_toml(text, file)
    document = tomlkit.parse(text)
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]
    return tomlkit.dumps(document)


def _save(file: Path, text: str, values: Mapping[str, Any]) -> None:
    validate(values, dict.fromkeys(values, str(file)))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8", newline="")
    draft.replace(file)
