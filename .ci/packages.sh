# Sourced, not run. Installs a system package where that is allowed: with apt-get, as root or by sudo that asks nothing.

# install_package NAME: 0 when apt-get has installed it; else 1, having said on stderr what a person should do.
install_package() {
    local -a as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        as_root=(sudo -n)
    fi
    if command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
        echo "Installing the system package $1 with apt-get." >&2
        # Output goes to stderr, since callers print results on stdout. A stale package list is no reason to stop:
        # what is wanted may be in the one that is there.
        "${as_root[@]}" apt-get update -qq >&2 </dev/null || true
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$1" >&2 </dev/null; then
            return 0
        fi
        echo "apt-get could not install $1; see its messages above." >&2
        return 1
    fi
    echo "Please install it; on Debian or Ubuntu:  sudo apt-get install --no-install-recommends $1" >&2
    return 1
}
