#!/usr/bin/env bash
# pythons.sh JOBS: runs quick tests of formats, rules, ingest, writing and sync with every newer Python of this machine, on the
# PATH or of pyenv, each in a fresh environment with the locked versions. Prints the interpreter and pytest's summary of each.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
sed -n 's/^\([a-z][^\\]*\) \\$/\1/p' requirements.lock >"$place/constraints.txt"
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
status=0
for version in 3.12 3.13 3.14; do
    [ "$version" != "$own" ] || continue
    python=
    for found in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
        # A name of pyenv's on the PATH may start nothing.
        if [ -x "$found" ] && "$found" -c 'import ensurepip, sqlite3, ssl, venv' 2>/dev/null; then
            python=$found
        fi
    done
    if [ -z "$python" ]; then
        echo "Python $version is not here."
        continue
    fi
    "$python" --version
    "$python" -m venv "$place/$version"
    "$place/$version/bin/pip" --quiet --quiet --disable-pip-version-check --no-input install \
        --constraint "$place/constraints.txt" hatchling
    "$place/$version/bin/pip" --quiet --quiet --disable-pip-version-check --no-input install --no-build-isolation \
        --constraint "$place/constraints.txt" --editable clients/python --editable '.[export]' \
        pytest pytest-trio pytest-timeout pytest-xdist hypothesis h11 httpx openapi-spec-validator jsonschema
    "$place/$version/bin/python" -m pytest -n "$jobs" --dist loadgroup -p no:cacheprovider --any-speed -m 'not slow' \
        tests/unit/protocol tests/unit/verifier tests/unit/node/{ingest,authoring,sync} tests/vectors || status=1
    rm -rf "${place:?}/$version"
done
exit "$status"
