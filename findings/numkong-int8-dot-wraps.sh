#!/usr/bin/env bash
# numkong 7.8.6 (PyPI): the dot product of long int8 rows wraps around, although the result is float64.
#
# Expected: `cdist(a, b, metric="dot")` of int8 rows returns float64, which represents every such sum exactly.
# Observed: the sum is accumulated in 32 bits. Rows of 200,000 values of 127 have the product 3,225,800,000, and the result
#   is -1,069,167,296, without an error. Up to 133,000 values of 127 the result is right.
#
# Output:
#   type of the result: float64
#   384 values: 6193536
#   200000 values: -1069167296 instead of 3225800000
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check numkong==7.8.6 numpy==2.4.6

cat >"$work/check.py" <<'PYTHON'
import numkong
import numpy as np


def multiply(length):
    """Return the product of two rows of the largest int8."""
    rows = np.full((1, length), 127, np.int8)
    return np.asarray(numkong.cdist(rows, rows, metric="dot")).reshape(-1)


short, long = multiply(384), multiply(200_000)
print("type of the result:", short.dtype)
print("384 values:", int(short[0]))
print("200000 values:", int(long[0]), "instead of", 200_000 * 127 * 127)
seen = (str(short.dtype), int(short[0]), int(long[0]))
raise SystemExit(0 if seen == ("float64", 6_193_536, -1_069_167_296) else "changed: numkong behaves differently")
PYTHON

env -i PATH="$PATH" HOME="$work" "$work/venv/bin/python" "$work/check.py"
