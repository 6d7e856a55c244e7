#!/usr/bin/env bash
# lancedb 0.40.0 (PyPI): a search by cosine leaves out rows whose vector is all zeros.
#
# Expected: an exact search without a filter, with a limit of at least the number of rows, returns every row. The cosine of
#   a zero vector is undefined, so its distance might be NaN, null or 1.
# Observed: the rows are missing. A query of zeros returns no row at all, and no error. The same search by "dot" returns
#   every row, the zero vectors with distance 1. An encoder that returns zeros for an empty text makes it impossible to
#   find this text, or any other for an empty query.
#
# Output:
#   cosine: 95 of 100 rows
#   cosine, a query of zeros: 0 of 100 rows
#   dot: 100 of 100 rows
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check lancedb==0.40.0 numpy==2.4.6 pyarrow==24.0.0

cat >"$work/check.py" <<'PYTHON'
import sys

import lancedb
import numpy as np

ROWS, ZEROS = 100, 5
vectors = np.random.default_rng(3).normal(size=(ROWS, 16)).astype(np.float32)
vectors[:ZEROS] = 0
rows = [{"seq": seq, "vector": vector} for seq, vector in enumerate(vectors)]
table = lancedb.connect(sys.argv[1]).create_table("rows", rows)


def count(query, distance):
    return table.search(query).distance_type(distance).limit(ROWS).to_arrow().num_rows


counts = count(vectors[-1], "cosine"), count(vectors[0], "cosine"), count(vectors[-1], "dot")
for name, number in zip(("cosine", "cosine, a query of zeros", "dot"), counts, strict=True):
    print(f"{name}: {number} of {ROWS} rows")
raise SystemExit(0 if counts == (ROWS - ZEROS, 0, ROWS) else "changed: lancedb behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py" "$work/table"
