#!/usr/bin/env bash
# bm25s 0.3.16 (PyPI): a query of unknown words returns the last documents.
#
# Expected: `retrieve` returns no document, or an error, if no word of the query is in the index.
# Observed: it returns as many documents as asked for, the last of the index first, each with score 0. The same happens with
#   an empty query. Documents with equal scores are also returned last first, so a caller must drop results with score 0
#   and break ties itself.
#
# Output:
#   unknown words: documents [9, 8, 7], scores [0.0, 0.0, 0.0]
#   empty query: documents [9, 8, 7], scores [0.0, 0.0, 0.0]
#   equal documents: [9, 8, 7]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check bm25s==0.3.16

cat >"$work/check.py" <<'PYTHON'
import bm25s


def retrieve(corpus, query):
    """Return the numbers and the scores of the best three documents."""
    index = bm25s.BM25()
    index.index(corpus, show_progress=False)
    documents, scores = index.retrieve([query], k=3, show_progress=False)
    return documents[0].tolist(), scores[0].tolist()


different = [["green", "tea", f"cup{number}"] for number in range(10)]
unknown, empty = retrieve(different, ["bicycle"]), retrieve(different, [])
equal = retrieve([["green", "tea"] for _ in range(10)], ["tea"])[0]
print(f"unknown words: documents {unknown[0]}, scores {unknown[1]}")
print(f"empty query: documents {empty[0]}, scores {empty[1]}")
print(f"equal documents: {equal}")
last = ([9, 8, 7], [0.0, 0.0, 0.0])
raise SystemExit(0 if (unknown, empty, equal) == (last, last, last[0]) else "changed: bm25s behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py"
