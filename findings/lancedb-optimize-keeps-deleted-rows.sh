#!/usr/bin/env bash
# lancedb 0.40.0 (PyPI): `optimize(cleanup_older_than=timedelta(0), delete_unverified=True)` keeps the bytes of deleted rows.
#
# Expected: after a deletion, a compaction and a cleanup of all older versions, no file contains the deleted vector.
# Observed: a data file of which at most a tenth is deleted is not rewritten, if there is no other file to merge it with.
#   The deleted vector stays in it until other rows are added or deleted. Writing the table anew with mode="overwrite",
#   and a cleanup, removes it.
#
# Output:
#   1 of 1000 rows deleted, optimized: 1 file contains the vector
#   the same, written anew: 0 files contain the vector
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check lancedb==0.40.0 numpy==2.4.6 pyarrow==24.0.0

cat >"$work/check.py" <<'PYTHON'
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import lancedb
import numpy as np

warnings.simplefilter("ignore")
ROWS = 1000
vectors = np.random.default_rng(3).normal(size=(ROWS, 16)).astype(np.float32)
folder = Path(sys.argv[1])
connection = lancedb.connect(folder)
table = connection.create_table("rows", [{"seq": seq, "vector": vector} for seq, vector in enumerate(vectors)])


def count_files(table):
    table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    return sum(vectors[5].tobytes() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


table.delete("seq = 5")
kept = count_files(table)
rows = table.search().select(["seq", "vector"]).limit(ROWS).to_batches()
left = count_files(connection.create_table("rows", rows, schema=table.schema, mode="overwrite"))
print(f"1 of {ROWS} rows deleted, optimized: {kept} file contains the vector")
print(f"the same, written anew: {left} files contain the vector")
raise SystemExit(0 if (kept, left) == (1, 0) else "changed: lancedb behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py" "$work/table"
