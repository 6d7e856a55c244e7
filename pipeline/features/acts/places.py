"""Read the places that a statement names: files, folders and patterns, and whether a file is in them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath

from pipeline.features.citations.parser import is_file_name
from pipeline.text.lexicon import word_sets

KEPT = 2048
# Pairs of words, which are no folders.
PAIRS = ("and/or", "und/oder", "he/she", "his/her", "true/false", "yes/no", "n/a", "i/o")
# Other short names that begin with a dot are endings of files.
SECRET_FILES = (".env", ".ssh", ".aws")
_PATH = re.compile(
    r"(?<![\w@./\\:-])(?:"
    r"(?:~|\.{1,2})?/?(?:[\w.@+*{},-]+/)+[\w.@+*{},-]*"
    r"|\.?[\w@+*-][\w.@+*-]*\.[A-Za-z]\w{0,9}(?![\w(])"
    r"|\.[a-z][\w.-]{2,20}"
    r"|[A-Z][a-z]+file(?!\w)"
    r")"
)
_NOT_FILES = re.compile(
    r"(?:node|next|vue|nuxt|express|three|d3|chart|react|backbone|ember|moment|asp)\.js|e\.g|z\.b|i\.e|u\.a|d\.h",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file, a folder or a pattern in lower case, and where a text names it."""

    path: str
    start: int
    end: int
    is_folder: bool = False

    @property
    def name(self) -> str:
        """Return the last part."""
        return PurePosixPath(self.path).name

    def contains(self, file: str) -> bool:
        """Return whether a file in lower case is the place, or below it."""
        if "*" in self.path or "{" in self.path:
            return any(_matches(form, file, is_folder=self.is_folder) for form in _expand(self.path))
        if self.is_folder:
            return f"/{self.path}/" in f"/{file}"
        return f"/{file}".endswith(f"/{self.path}") or ("/" in file and f"/{self.path}".endswith(f"/{file}"))


def list_places(text: str) -> list[Place]:
    """List the places that a text names, in order."""
    places = []
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".,:;").removeprefix("./")
        name = path.rstrip("/").rpartition("/")[2]
        if _NOT_FILES.fullmatch(path) or path.startswith("/") or path.count("/") == len(path):
            continue
        is_file = is_file_name(path) or name.startswith(".") or name.endswith("file")
        is_pattern = ("*" in name or "{" in name) and re.search(r"[./]", path) is not None
        is_ending = re.fullmatch(r"\.[a-z]{1,4}", path) is not None and path.lower() not in SECRET_FILES
        is_folder = path.endswith("/") or ("/" in path and not is_file and not is_pattern)
        if (is_folder and path.lower() not in PAIRS) or (not is_folder and (is_file or is_pattern) and not is_ending):
            places.append(Place(path.strip("/").lower(), *match.span(), is_folder))
    return places


def list_endings(text: str) -> frozenset[str]:
    """Return the endings of the files of the languages that a text names."""
    known = word_sets("acts.languages")
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return frozenset(ending for word in words for ending in known.get(word, ()))


def is_in(places: Iterable[Place], file: str) -> bool:
    """Return whether a file is in one of the places."""
    return any(place.contains(file) for place in places)


def _matches(form: str, file: str, *, is_folder: bool) -> bool:
    forms = [form, f"{form}/*"] if is_folder else [form]
    return any(
        fnmatchcase(file, one) or fnmatchcase(f"/{file}", f"*/{one}") or fnmatchcase(PurePosixPath(file).name, one)
        for one in forms
    )


@lru_cache(KEPT)
def _expand(glob: str) -> tuple[str, ...]:
    braces = re.search(r"\{([^{}]*)\}", glob)
    forms = [glob] if braces is None else [glob.replace(braces[0], one) for one in braces[1].split(",")]
    return tuple(form.replace("**/", "*").replace("**", "*") for form in forms)
