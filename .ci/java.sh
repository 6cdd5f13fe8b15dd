#!/usr/bin/env bash
# java.sh [COMMAND ...]: finds a Java runtime that Spark can use, in JAVA_HOME, on the PATH, or where Debian puts them;
# if there is none, installs Debian's where that is allowed. Then runs COMMAND with JAVA_HOME naming it, or says where it is.
set -euo pipefail
# shellcheck source=.ci/packages.sh
. "$(dirname "$0")/packages.sh"

JAVA_MAJOR_MIN=17 # Spark 4 starts on nothing older.

# The major version of a java binary: 17 for "17.0.15", 1 for the old "1.8.0_402"; nothing if it does not run.
major_of() {
    { "$1" -version 2>&1 || true; } | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

# Prints the home of the first Java that is new enough.
find_java() {
    local java major
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        [ -x "$java" ] || continue
        java=$(readlink -f "$java")
        major=$(major_of "$java")
        if [ -n "$major" ] && [ "$major" -ge "$JAVA_MAJOR_MIN" ]; then
            dirname "$(dirname "$java")"
            return 0
        fi
    done
    return 1
}

if ! home=$(find_java); then
    echo "Spark needs a Java runtime of version $JAVA_MAJOR_MIN or newer, and none was found (JAVA_HOME is '${JAVA_HOME:-}')." >&2
    install_package default-jre-headless
    if ! home=$(find_java); then
        echo "default-jre-headless is older than $JAVA_MAJOR_MIN here. Install a newer one by hand and set JAVA_HOME to it." >&2
        exit 1
    fi
fi

export JAVA_HOME=$home
if [ $# -eq 0 ]; then
    echo "Java $(major_of "$home/bin/java") in $home."
else
    exec "$@"
fi
