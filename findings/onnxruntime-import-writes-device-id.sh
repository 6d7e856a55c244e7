#!/usr/bin/env bash
# onnxruntime 1.31.1 (PyPI, official Linux build): `import onnxruntime` writes to the user's cache folder.
#
# Expected: an import writes no file. `disable_telemetry_events()` is the way to turn telemetry off from Python.
# Observed: the import alone, without a session or a model, creates a persistent device id and a database of events.
#   `disable_telemetry_events()` is too late: it can be called only after the import, and both files exist by then.
#   ORT_DISABLE_TELEMETRY=1 prevents them if it is set before the import. CI=1 has the same effect, so that a test in
#   CI does not notice the files.
#
# Output:
#   import                             deviceid onnxruntime.db
#   import, then the API               deviceid onnxruntime.db
#   import, then the variable          deviceid onnxruntime.db
#   the variable, then import          (no file)
#   CI=1, then import                  (no file)
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.31.1

changed=0

# Run Python code without a network and with an empty home folder, and compare the names of the files that it leaves.
check() {
    local label=$1 expected=$2 code=$3 home files
    home=$(mktemp -d -p "$work")
    env -i PATH="$PATH" HOME="$home" unshare --map-root-user --net "$work/venv/bin/python" -c "$code"
    files=$(find "$home" -type f -printf '%P\n' | sort | paste -sd ' ')
    printf '%-34s %s\n' "$label" "$(basename -a ${files:-"(no file)"} | paste -sd ' ')"
    if [[ $files != "$expected" ]]; then
        echo "  changed: expected '$expected', found '$files'" >&2
        changed=1
    fi
}

folder=.cache/Microsoft/DeveloperTools/.onnxruntime
both="$folder/deviceid $folder/onnxruntime.db"
check "import" "$both" 'import onnxruntime'
check "import, then the API" "$both" 'import onnxruntime; onnxruntime.disable_telemetry_events()'
check "import, then the variable" "$both" 'import os, onnxruntime; os.environ["ORT_DISABLE_TELEMETRY"] = "1"'
check "the variable, then import" "" 'import os; os.environ["ORT_DISABLE_TELEMETRY"] = "1"; import onnxruntime'
check "CI=1, then import" "" 'import os; os.environ["CI"] = "1"; import onnxruntime'
exit "$changed"
