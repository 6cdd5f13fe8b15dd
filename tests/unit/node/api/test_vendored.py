"""Modules of others that the page loads are those of the lock file, unchanged since they were copied."""

import json
from pathlib import Path

from tests.support.vendored import (
    BUNDLER,
    EDITOR,
    FILES,
    FOLDER,
    LICENCES,
    LOCK,
    MANIFEST,
    hash_of,
    locked,
    with_paths,
)

ROOT = Path(__file__).parents[4]


def test_each_file_has_the_hash_the_version_and_the_licence_of_the_manifest() -> None:
    manifest = json.loads(MANIFEST.read_text())
    assert [ROOT / one["file"] for one in manifest] == [*(one.target for one in FILES), EDITOR]
    licences = LICENCES.read_text(encoding="utf-8")
    for one in manifest:
        assert hash_of((ROOT / one["file"]).read_text(encoding="utf-8")) == one["sha256"], one["file"]
    for one in [*manifest[:-1], *manifest[-1]["packages"]]:
        entry = locked()[one["package"]]
        assert (one["version"], one["integrity"]) == (entry["version"], entry["integrity"])
        assert entry["integrity"].startswith("sha512-")
        assert f"{one['package']} {one['version']} ({one['licence']})" in licences


def test_nothing_else_is_vendored_and_the_lock_names_no_registry() -> None:
    known = {one.target for one in FILES} | {EDITOR, LICENCES, MANIFEST, LOCK, FOLDER / "package.json"}
    assert {path for path in FOLDER.iterdir() if path not in known} == set()
    bundle = json.loads(MANIFEST.read_text())[-1]
    bundled = {one["package"] for one in bundle["packages"]}
    assert bundle["bundler"] == f"{BUNDLER} {locked()[BUNDLER]['version']}"
    assert bundled <= set(locked())
    direct = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    assert set(direct) <= {one.package for one in FILES} | bundled, "all that is asked for is used"
    assert "resolved" not in LOCK.read_text()


def test_imports_become_paths_and_source_maps_go() -> None:
    text = 'import{a}from"preact";import{b}from"preact/hooks";export{x}from"./y.js";\n//# sourceMappingURL=a.js.map\n'
    assert with_paths(text) == (
        'import{a}from"./preact.js";import{b}from"./preact-hooks.js";export{x}from"./y.js";\n'
    )
