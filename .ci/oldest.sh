#!/usr/bin/env bash
# Reads exports with the oldest readers that clients/python/pyproject.toml takes, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
# numpy 2 came after the oldest pandas, which does not say so.
oldest=$("$folder/venv/bin/python" - <<'PYTHON'
import re
import tomllib

with open("clients/python/pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
found = {need for name in ("pandas", "polars", "duckdb") for need in extras[name]}
print(*sorted(re.sub(r">=([\d.]+).*", r"==\1.*", need) for need in found), "numpy<2")
PYTHON
)
echo "$oldest"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install $oldest ./clients/python
"$folder/venv/bin/python" examples/sample_exports.py "$folder/sample" 600
"$folder/venv/bin/python" .ci/oldest.py "$folder/sample" tests/unit/analytics/reading/golden/schema-1
