#!/usr/bin/env bash
# Makes .venv: a virtual environment with exactly what requirements.lock names (each file checked by its hash), and this
# checkout and its client, editable. Safe to run again: what is there stays, what is missing or broken is made. PYTHON names
# another interpreter than python3, or than the faster build of it that was found.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=.ci/packages.sh
. .ci/packages.sh

is_recent='import sys; sys.exit(sys.version_info < (3, 11))'

# Prints python3, or the system's own build of the same version where that is another one. Distributions build theirs with
# profiles, which is a tenth faster; pyenv does so only when asked (--enable-optimizations).
choose_python() {
    local plain='import sys, sysconfig
if "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
    print("python%d.%d" % sys.version_info[:2])'
    local name
    name=$(python3 -c "$plain" 2>/dev/null) || name=
    if [ -n "$name" ] && "/usr/bin/$name" -c 'import ensurepip, sqlite3, ssl, venv' 2>/dev/null; then
        echo "/usr/bin/$name"
    else
        echo python3
    fi
}

python=${PYTHON:-$(choose_python)}

if ! "$python" -c "$is_recent" 2>/dev/null; then
    found=$("$python" --version 2>/dev/null) || found="not there"
    echo "Ravel needs Python 3.11 or newer; $python is $found." >&2
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

# Hashes are required of every file. Pip and setuptools come first, since builds of what is published as source only
# (PySpark, and this checkout) are to use the locked build tools too, and not whatever is newest. Pip and not uv: it is
# there already, and follows the machine's own settings for mirrors and certificates.
pip=(.venv/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input install) # errors alone
echo "Installing the locked dependencies into .venv; the first time takes a minute or two."
awk '/^[^ ]/ { wanted = /^(pip|setuptools)==/ } wanted' requirements.lock >.venv/build-tools.lock
"${pip[@]}" --require-hashes --no-deps -r .venv/build-tools.lock
"${pip[@]}" --require-hashes --no-deps --no-build-isolation -r requirements.lock
"${pip[@]}" --no-deps --no-build-isolation --editable clients/python --editable .
# Pip shows nothing of a build that succeeds, and the one of this checkout does without a compiler.
.venv/bin/python -c 'from node.ingest.native_reading import LIBRARY, Library; Library(LIBRARY)' 2>/dev/null ||
    echo "The compiled reader was not built, and the node will read by Python, which takes longer (is there a C compiler?)."
echo "Set up in .venv with $(.venv/bin/python --version) of $(readlink -f .venv/bin/python)."
