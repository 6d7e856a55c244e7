"""Variables of other programs in the environment: object storage, the terminal, folders and telemetry."""

import os
from pathlib import Path

# Variables of S3 clients that name a server other than Amazon's.
S3_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def environment_allows_http() -> bool:
    """Return whether object storage may be used without TLS: only if its endpoint is an http address."""
    endpoint = next((os.environ[name] for name in S3_ENDPOINT_VARIABLES if os.environ.get(name)), "")
    return endpoint.startswith("http://")


def environment_encoding() -> str | None:
    """Return the terminal encoding that the environment names; Python in isolated mode ignores it."""
    return os.environ.get("PYTHONIOENCODING", "").partition(":")[0] or None


def disable_telemetry() -> None:
    """Turn off the telemetry of libraries that this process imports from now on, and of its children."""
    os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")


def find_cache_folder() -> Path | None:
    """Return the folder of this user's caches (XDG Base Directory Specification), None if no variable names it."""
    folder, home = Path(os.environ.get("XDG_CACHE_HOME", "")), Path(os.environ.get("HOME", ""))
    if folder.is_absolute():
        return folder
    return home / ".cache" if home.is_absolute() else None


def find_claude_folder() -> Path:
    """Return the folder of Claude Code's settings."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
