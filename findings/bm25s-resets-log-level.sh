#!/usr/bin/env bash
# bm25s 0.3.16 (PyPI): the import sets the level of the logger "bm25s" to DEBUG.
#
# Expected: a library leaves the level of its logger alone, so that the application's configuration applies. With the
#   root logger at WARNING, or with the logger "bm25s" at ERROR, building an index logs nothing.
# Observed: the import overwrites the level ERROR, which the application has set, with DEBUG. The handler of the root
#   logger then prints the library's DEBUG lines, although the root logger has the level WARNING: a handler checks its
#   own level only. The application must set the level after the import.
#
# Output:
#   level before the import: ERROR
#   level after the import: DEBUG
#   lines with the level set before the import: ['DEBUG Building index from tokens']
#   lines with the level set after the import: []
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check bm25s==0.3.16

cat >"$work/check.py" <<'PYTHON'
import io
import logging

shown = io.StringIO()
logging.basicConfig(level=logging.WARNING, stream=shown, format="%(levelname)s %(message)s")
logger = logging.getLogger("bm25s")
logger.setLevel(logging.ERROR)
before = logging.getLevelName(logger.level)

import bm25s

after = logging.getLevelName(logger.level)


def build_index():
    """Build an index of two texts and return the lines that were logged."""
    shown.seek(0)
    shown.truncate()
    bm25s.BM25().index([["green", "tea"], ["black", "coffee"]], show_progress=False)
    return shown.getvalue().splitlines()


lines = build_index()
logger.setLevel(logging.ERROR)
quiet = build_index()

print("level before the import:", before)
print("level after the import:", after)
print("lines with the level set before the import:", lines)
print("lines with the level set after the import:", quiet)
unchanged = (before, after, lines, quiet) == ("ERROR", "DEBUG", ["DEBUG Building index from tokens"], [])
raise SystemExit(0 if unchanged else "changed: bm25s behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py"
