#!/usr/bin/env bash
# Builds sdist and wheel of the node and of its client into dist/ with the locked build tools, installs the wheels into a
# fresh environment without the analytics extra, their dependencies in the locked versions, and sees that the node there
# starts, answers and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

# Megabytes of 10^6 bytes without pip and byte code: what a phone line and a small server are asked for.
BASE_SIZE_MAX=150
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
"$place/venv/bin/pip" --quiet --quiet --disable-pip-version-check --no-input install \
    --constraint "$place/constraints.txt" dist/*.whl

# The client alone, with what it needs from the package index and nothing of the node.
"$tools/python" -m venv "$place/app"
"$place/app/bin/pip" --quiet --quiet --disable-pip-version-check --no-input install dist/ravel_client-*.whl

cd "$place"
ravel=("$place/venv/bin/ravel" --home "$place/home")
"${ravel[@]}" --help >help.txt
"$place/venv/bin/python" -c 'from node.ingest.native_reading import LIBRARY, Library; Library(LIBRARY)' # it was built, and loads
"${ravel[@]}" init --clear --listen 127.0.0.1:0 --api 127.0.0.1:0
"${ravel[@]}" run >ready.txt &
daemon=$!
for _ in $(seq 600); do # a minute: a busy machine takes long to start it
    grep -q '^ready' ready.txt && break
    kill -0 "$daemon"
    sleep 0.1
done
"${ravel[@]}" status
"$place/app/bin/python" -c 'import ravel, sys; print(ravel.connect(sys.argv[1]).show_status()["node"])' "$place/home"
"${ravel[@]}" export 2>refused.txt && exit 1
grep -q 'PyArrow is not installed' refused.txt
kill "$daemon"
wait "$daemon"
daemon=
rm -rf "$place/venv/lib/python3"*/site-packages/{pip,pip-*}
size=$(find "$place/venv" -name __pycache__ -prune -o -type f -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1000000) }')
echo "The wheel works in an environment of $size MB."
[ "$size" -le "$BASE_SIZE_MAX" ]

# Another distribution with a package of one of Ravel's names is noticed at start, and named.
mkdir -p "$place/other/analytics"
echo 'VERSION = "1"' >"$place/other/analytics/client.py"
printf '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "other-analytics"\nversion = "1"\n' \
    >"$place/other/pyproject.toml"
printf '[tool.hatch.build.targets.wheel]\nonly-include = ["analytics"]\n' >>"$place/other/pyproject.toml"
(cd "$place/other" && "$tools/python" -m hatchling build --target wheel --directory "$place/wheels")
"$tools/python" -m pip --python "$place/venv/bin/python" --quiet --quiet --disable-pip-version-check install --no-deps --no-index \
    "$place"/wheels/*.whl
"${ravel[@]}" run 2>refused.txt && exit 1
grep -q 'other-analytics and ravel-node are installed into the same folder' refused.txt
cd - >/dev/null
ls -l dist
