#!/usr/bin/env bash
# Makes .venv: a virtual environment with exactly what requirements.lock names (each file checked by its hash) and this
# checkout, editable. Safe to run again: what is there stays, what is missing or broken is made. PYTHON names another
# interpreter than python3.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=.ci/packages.sh
. .ci/packages.sh

python=${PYTHON:-python3}
is_recent='import sys; sys.exit(sys.version_info < (3, 11))'

if ! command -v "$python" >/dev/null; then
    echo "$python is not there. Ravel needs Python 3.11 or newer." >&2
    install_package python3
fi
if ! "$python" -c "$is_recent"; then
    echo "Ravel needs Python 3.11 or newer, and $python is $("$python" --version 2>&1)." >&2
    echo "Name another:  make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
# Debian keeps the part of venv that brings pip in a package of its own.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$python cannot make virtual environments: its venv module is not whole." >&2
    install_package python3-venv
fi

if ! .venv/bin/python -c "$is_recent" 2>/dev/null; then
    "$python" -m venv --clear .venv
elif ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    .venv/bin/python -m ensurepip >/dev/null
fi

# uv comes first and by pip, at the version and with the hashes of its entry in the lock; then it installs the rest, and
# builds what is published as source only with the build tools of the lock.
awk '/^[^ ]/ { is_uv = /^uv==/ } is_uv' requirements.lock >.venv/uv.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --no-deps -r .venv/uv.lock
uv=(.venv/bin/uv --quiet pip install --python .venv/bin/python)
"${uv[@]}" --require-hashes --build-constraints requirements.lock -r requirements.lock
"${uv[@]}" --no-deps --no-build-isolation --editable .
echo "Set up in .venv with $(.venv/bin/python --version)."
