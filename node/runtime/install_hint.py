"""The command that adds an optional part to this installation, as it was made: checkout, uv, pipx or pip."""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

_PACKAGE: Final = "ravel-node"
_CLIENT: Final = "clients/python"
_CHECKOUT: Final = Path(__file__).parents[2]


class _Commit(msgspec.Struct):
    """Commit of a repository that a package was installed from."""

    vcs: str
    commit_id: str


class _Source(msgspec.Struct):
    """Source of a package that is from no index, as pip and uv note it (direct_url.json)."""

    url: str
    vcs_info: _Commit | None = None

    @property
    def text(self) -> str:
        """Return the extra as requirements name it."""
        commit = self.vcs_info
        return self.url if commit is None else f"{commit.vcs}+{self.url}@{commit.commit_id}"


def install_command(extra: str, prefix: Path | None = None, checkout: Path = _CHECKOUT) -> str:
    """Return the command that installs an extra; it names the file of a package that is on no index."""
    prefix = prefix or Path(sys.prefix)
    wanted = f"{_PACKAGE}[{extra}]"
    if (checkout / "pyproject.toml").exists():
        return (
            f"{shlex.quote(sys.executable)} -m pip install --editable {shlex.quote(f'{checkout}[{extra}]')}"
        )
    source, found, for_pipx = _source(), "", ""
    if source:
        wanted += f" @ {source}"
    if source.endswith(".whl"):
        # The client's wheel, which is on no index either then, lies beside the node's.
        links = f"--find-links {shlex.quote(unquote(urlsplit(source).path.rpartition('/')[0]))}"
        found, for_pipx = f"{links} ", f"--pip-args={shlex.quote(links)} "
    elif client := _client_in(source):  # uv finds it itself, and pip has it already
        for_pipx = f"--preinstall {shlex.quote(client)} "
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {found}{shlex.quote(wanted)}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {for_pipx}{shlex.quote(wanted)}"
    return f"{shlex.quote(sys.executable)} -m pip install {found}{shlex.quote(wanted)}"


def _client_in(source: str) -> str:
    """Return the client in a folder or repository that this was installed from; empty for another source."""
    if source.startswith("git+"):
        return f"{source}#subdirectory={_CLIENT}"
    folder = Path(unquote(urlsplit(source).path), _CLIENT)
    return str(folder) if source.startswith("file:") and folder.is_dir() else ""


def _source() -> str:
    """Return the URL of what this was installed from; empty for a package of an index."""
    try:
        noted = distribution(_PACKAGE).read_text("direct_url.json")
        return msgspec.json.decode(noted, type=_Source).text if noted else ""
    except (PackageNotFoundError, OSError, msgspec.DecodeError):
        return ""
