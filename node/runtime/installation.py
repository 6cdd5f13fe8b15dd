"""Check that no other distribution has written into the folders of Ravel's packages.

Names such as `analytics` and `storage` are common. pip installs two distributions with a package of one name into one
folder, without a word: each overwrites files of the other.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Final

from node.runtime.errors import ServiceError

_NAME: Final = "ravel-node"
_PACKAGES: Final = ("analytics", "node", "protocol", "storage", "verifier")


def check_installation(name: str = _NAME) -> None:
    """Raise ServiceError `bad_config` where another distribution shares one of Ravel's folders. O(files of Ravel).

    An editable checkout lists no files of packages, and has its folders for itself.
    """
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return
    foreign = _find_foreign(installed)
    if foreign is None:
        return
    owner = _owner_of(foreign, name)
    raise ServiceError(
        "bad_config",
        f"{owner} and {name} are installed into the same folder: {foreign} is not as {name} has it",
        f"install {name} in an environment of its own: `pipx install {name}` or `uv tool install {name}`",
    )


def _find_foreign(installed: Distribution) -> str | None:
    """Return the path, from site-packages, of a file at the top of a package that is altered or not ours."""
    files = [file for file in installed.files or () if file.parts[0] in _PACKAGES]
    listed = {str(file): file.hash.value if file.hash else None for file in files}
    if not listed:
        return None
    root = Path(str(installed.locate_file("")))
    for package in _PACKAGES:
        for path in sorted((root / package).glob("*")):
            place = path.relative_to(root).as_posix()
            if path.name == "__pycache__":
                continue
            if path.is_dir():
                # What is left of a folder that an older version had is bytecode alone.
                has_code = any(one.is_file() and "__pycache__" not in one.parts for one in path.rglob("*"))
                if has_code and not any(name.startswith(f"{place}/") for name in listed):
                    return place
            elif place not in listed or not _has_hash(path, listed[place]):
                return place
    return None


def _has_hash(path: Path, expected: str | None) -> bool:
    """Return True if a file has the SHA-256 that RECORD lists, or RECORD lists none."""
    found = urlsafe_b64encode(sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
    return expected is None or found == expected


def _owner_of(place: str, name: str) -> str:
    """Return the name of another distribution that lists a file or folder there. O(files of the environment)."""
    for one in distributions():
        if one.name != name and any(
            str(file) == place or str(file).startswith(f"{place}/") for file in one.files or ()
        ):
            return one.name
    return "another program"
