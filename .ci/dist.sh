#!/usr/bin/env bash
# Builds sdist and wheel of the node and of its client into dist/ with the locked build tools, installs the wheels into a
# fresh environment without the analytics extra, their dependencies in the locked versions, and sees that the node there
# starts, answers and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.venv/bin
rm -rf dist
"$tools/python" -m hatchling build --target sdist --target wheel --directory dist
(cd clients/python && "$tools/python" -m hatchling build --target sdist --target wheel --directory ../../dist)

place=$(mktemp -d)
daemon=
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$place"
}
trap finish EXIT
sed -n 's/^\([a-z][^\\]*\) \\$/\1/p' requirements.lock >"$place/constraints.txt"
"$tools/python" -m venv "$place/venv"
"$place/venv/bin/pip" --quiet --disable-pip-version-check --no-input install \
    --constraint "$place/constraints.txt" dist/*.whl

# The client alone, with what it needs from the package index and nothing of the node.
"$tools/python" -m venv "$place/app"
"$place/app/bin/pip" --quiet --disable-pip-version-check --no-input install dist/ravel_client-*.whl

cd "$place"
ravel=("$place/venv/bin/ravel" --home "$place/home")
"${ravel[@]}" --help >help.txt
"${ravel[@]}" init --clear --listen 127.0.0.1:0 --api 127.0.0.1:0
"${ravel[@]}" run >ready.txt &
daemon=$!
for _ in $(seq 100); do
    grep -q '^ready' ready.txt && break
    kill -0 "$daemon"
    sleep 0.1
done
"${ravel[@]}" status
"$place/app/bin/python" -c 'import ravel, sys; print(ravel.connect(sys.argv[1]).show_status()["node"])' "$place/home"
kill "$daemon"
wait "$daemon"
daemon=
echo "The wheel works in an environment of $(du -sm "$place/venv" | cut -f1) MB."
cd - >/dev/null
ls -l dist
