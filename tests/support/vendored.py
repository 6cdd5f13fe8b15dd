"""Modules of others that the page is served with, and axe-core, which only tests use: copied from npm's lock file.

`python -m tests.support.vendored` (`make vendor`, needs npm and its registry) installs what `package-lock.json` beside them
names, without running a script of theirs, and writes the files, their licences, and a manifest with versions and hashes.
A test sees that files, manifest and lock fit together, without npm.

Two things change in a file. Names of modules become paths, since browsers know no names without an import map, which would
stand inline. Comments that name source maps go, since these are not served.

The text editor is some sixty modules of fifteen packages, so esbuild makes one file of them. The same lock file gives the
same bytes. The manifest names every package of which something is in it.
"""

import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = _ROOT / "node" / "web" / "vendor"
EDITOR: Final = FOLDER / "editor.js"
EDITOR_ENTRY: Final = _ROOT / "tests" / "vendor" / "editor-entry.js"
BUNDLER: Final = "esbuild"
AXE: Final = _ROOT / "tests" / "vendor" / "axe.min.js"
LICENCES: Final = FOLDER / "LICENCES.txt"
MANIFEST: Final = FOLDER / "manifest.json"
LOCK: Final = FOLDER / "package-lock.json"
_SOURCE_MAP: Final = re.compile(r"\n?//# sourceMappingURL=\S+\s*$")


@dataclass(frozen=True, slots=True)
class Vendored:
    """A file of a package, and where its copy is."""

    package: str
    source: str
    target: Path
    imported_as: str = ""


FILES: Final = (
    Vendored("preact", "dist/preact.mjs", FOLDER / "preact.js", "preact"),
    Vendored("preact", "hooks/dist/hooks.mjs", FOLDER / "preact-hooks.js", "preact/hooks"),
    Vendored(
        "@preact/signals-core",
        "dist/signals-core.module.js",
        FOLDER / "signals-core.js",
        "@preact/signals-core",
    ),
    Vendored("@preact/signals", "dist/signals.module.js", FOLDER / "signals.js", "@preact/signals"),
    Vendored("htm", "dist/htm.module.js", FOLDER / "htm.js", "htm"),
    Vendored("marked", "lib/marked.esm.js", FOLDER / "marked.js", "marked"),
    Vendored("qr", "index.js", FOLDER / "qr.js", "./index.js"),
    Vendored("qr", "decode.js", FOLDER / "qr-decode.js"),
    Vendored("axe-core", "axe.min.js", AXE),
)


def hash_of(text: str) -> str:
    """SHA-256 of a text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def locked() -> dict[str, dict[str, Any]]:
    """Name of each locked package -> its entry."""
    packages = json.loads(LOCK.read_text())["packages"]
    return {path.removeprefix("node_modules/"): entry for path, entry in packages.items() if path}


def with_paths(text: str) -> str:
    """A module whose imports are paths, without its source map."""
    for one in FILES:
        if one.imported_as:
            text = re.sub(
                rf"""(from|import) ?["']{re.escape(one.imported_as)}["']""",
                rf'\1"./{one.target.name}"',
                text,
            )
    return _SOURCE_MAP.sub("\n", text)


def _bundle(folder: Path) -> list[str]:
    """Write the editor; names of the packages that are in it, sorted."""
    entry = folder / EDITOR_ENTRY.name
    entry.write_text(EDITOR_ENTRY.read_text(encoding="utf-8"), encoding="utf-8")
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none"]
    esbuild = ["node_modules/.bin/esbuild", entry.name, *options, "--outfile=out.js", "--metafile=meta.json"]
    subprocess.run(esbuild, cwd=folder, check=True)
    EDITOR.write_text((folder / "out.js").read_text(encoding="utf-8"), encoding="utf-8")
    inputs = json.loads((folder / "meta.json").read_text())["inputs"]
    paths = [path.split("node_modules/")[-1] for path in inputs if "node_modules/" in path]
    return sorted({"/".join(path.split("/")[: 2 if path.startswith("@") else 1]) for path in paths})


def _describe(package: str) -> dict[str, str]:
    entry = locked()[package]
    about = {"package": package, "version": entry["version"], "licence": entry["license"]}
    return about | {"integrity": entry["integrity"]}


def _add_licence(package: Path, about: dict[str, str], licences: list[str]) -> None:
    heading = f"{about['package']} {about['version']} ({about['licence']})"
    if not any(known.startswith(heading) for known in licences):
        (found,) = package.glob("LICENSE")
        licences.append(f"{heading}\n\n{found.read_text(encoding='utf-8').strip()}\n")


def _copy(folder: Path) -> None:
    modules = folder / "node_modules"
    manifest: list[dict[str, Any]] = []
    licences: list[str] = []
    for one in FILES:
        package = modules / one.package
        text = with_paths((package / one.source).read_text(encoding="utf-8"))
        one.target.parent.mkdir(exist_ok=True)
        one.target.write_text(text, encoding="utf-8")
        about = _describe(one.package)
        _add_licence(package, about, licences)
        about |= {"source": one.source}
        manifest.append(about | {"file": str(one.target.relative_to(_ROOT)), "sha256": hash_of(text)})
    parts = [_describe(name) for name in _bundle(folder)]
    for about in parts:
        _add_licence(modules / about["package"], about, licences)
    bundle = {"bundler": f"{BUNDLER} {locked()[BUNDLER]['version']}", "packages": parts}
    hashed = hash_of(EDITOR.read_text(encoding="utf-8"))
    manifest.append(bundle | {"file": str(EDITOR.relative_to(_ROOT)), "sha256": hashed})
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")
    LICENCES.write_text(f"\n{'-' * 72}\n\n".join(licences), encoding="utf-8")


def main() -> None:
    """Write them."""
    with TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            (Path(folder) / name).write_text((FOLDER / name).read_text())
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=folder, check=True)
        _copy(Path(folder))


if __name__ == "__main__":
    main()
