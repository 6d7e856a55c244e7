"""The optional features, and the packages that each of them needs."""

import importlib.util
import json
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipeline.kernel.errors import ExtraMissing


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional feature, and the modules that the extra of the same name installs for it."""

    feature: str
    modules: tuple[str, ...]


EXTRAS = {
    "encryption": Extra("An encrypted data directory", ("sqlcipher3",)),
    "pdf": Extra("Reading PDF files", ("pypdf",)),
    "postgres": Extra("A store on PostgreSQL", ("psycopg",)),
    "s3": Extra("Object storage", ("obstore",)),
    "sync": Extra("Sync between machines", ("bech32", "obstore", "pyrage")),
    "team": Extra("Sign-in by OpenID Connect", ("authlib", "joserfc", "requests")),
}


def list_missing(name: str) -> list[str]:
    """Return the modules of an extra that are not installed, without importing any."""
    return [module for module in EXTRAS[name].modules if not _is_installed(module)]


def require_extra(name: str) -> None:
    """Raise ExtraMissing if a package of the extra is not installed."""
    missing = list_missing(name)
    if missing:
        packages = f"package{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise ExtraMissing(
            f"{EXTRAS[name].feature} needs the {packages}. Install the extra with `{install_command(name)}`."
        )


def install_command(*names: str) -> str:
    """Return the command that installs extras into this installation: Reverie comes from a checkout or a wheel."""
    origin = json.loads(distribution("reverie").read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    source = unquote(url.path).rstrip("/") if url.scheme == "file" else origin.get("url", "reverie")
    target = shlex.quote(f"{source}[{','.join(names)}]")
    tools = Path(sys.prefix).parent
    if tools.name == "tools" and tools.parent.name == "uv":
        return f"uv tool install --reinstall --torch-backend cpu {target}"
    if tools.name == "venvs" and tools.parent.name == "pipx":
        return f"pipx install --force {target}"
    editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
    return f"{shlex.quote(sys.executable)} -m pip install {editable}{target}"


def _is_installed(module: str) -> bool:
    if sys.modules.get(module) is not None:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
