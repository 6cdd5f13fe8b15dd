"""The page's files and codes: who gets them, with which headers, and how often."""

import gzip
import os
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from node.api.web_page import OPEN_PATHS, PageCodes
from node.contract.access import ACTIONS
from node.runtime.errors import ERROR_KINDS, ServiceError
from protocol.limits.users import PAGE_CODE_SECONDS, PAGE_CODES_MAX
from tests.support.served import TOKEN, served

WEB = Path(__file__).parents[4] / "node" / "web"
SCRIPTS_COMPRESSED_SIZE_MAX = 150_000
"""Bytes of a first visit, each file compressed by gzip."""
IMPORTED = re.compile(r'^(?:import|export)\b[^;]*?"(\.[^"]+)";', re.MULTILINE)
"""Scripts that a script imports before it runs. A first visit needs none that `import()` loads later."""


def _first_visit(language: str) -> set[str]:
    """Return paths of all scripts that the page of a language is made of before anything is opened."""
    found, due = set[str](), ["app.js", f"strings/{language}.js"]
    while due:
        one = due.pop()
        if one not in found:
            found.add(one)
            due += [
                os.path.normpath(Path(one).parent / name)
                for name in IMPORTED.findall((WEB / one).read_text(encoding="utf-8"))
            ]
    return found


async def test_files_need_no_token_and_forbid_everything_foreign(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        del one.client.headers["Authorization"]
        for path in OPEN_PATHS - {"/open", "/report", "/export"}:
            answer = await one.client.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
            assert "set-cookie" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
        for path in (
            "/web/../api.py",
            "/web/%2e%2e/api.py",
            "/web/",
            "/web/app.js/",
            "/web",
            "/api/v1/status",
        ):
            assert (await one.client.get(path)).status_code == 401, path
        foreign = {"Origin": "http://example.org"}
        assert (await one.client.get("/", headers=foreign)).status_code == 403
        assert (await one.client.get("/", headers={"Host": "example.org"})).status_code == 403


@pytest.mark.slow
async def test_a_code_gives_the_token_once_and_to_our_own_page_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        code = (await one.client.post("/api/v1/codes")).json()
        assert code["path"] == f"/#code={code['code']}", "behind the #, which browsers do not send"
        del one.client.headers["Authorization"]
        assert (await one.client.post("/api/v1/codes")).status_code == 401
        body = {"code": code["code"]}
        foreign = {"Origin": "http://example.org"}
        assert (await one.client.post("/open", json=body, headers=foreign)).status_code == 403
        assert (await one.client.get("/open")).status_code == 405
        token = (await one.client.post("/open", json=body)).json()["token"]
        assert token != TOKEN, "the page gets a token of its own"
        own = {"Authorization": f"Bearer {token}"}
        shown = (await one.client.get("/api/v1/token", headers=own)).json()
        assert (shown["kind"], shown["repos"], len(shown["actions"])) == ("page", [], len(ACTIONS))
        refused = await one.client.post("/api/v1/codes", headers=own)
        assert refused.status_code == 403, "and opens no others"
        again = await one.client.post("/open", json=body)
        assert (again.status_code, again.json()["error"]["code"]) == (401, "unauthorized")
        for bad in ({}, {"code": ""}, {"code": "x" * 65}, {"code": 1}, {"code": "x", "more": 1}):
            assert (await one.client.post("/open", json=bad)).status_code == 400


def test_codes_are_few_and_soon_too_old() -> None:
    now = 0.0
    codes = PageCodes(lambda: now)
    made = [codes.make() for _ in range(PAGE_CODES_MAX + 1)]
    assert len(set(made)) == len(made)
    with pytest.raises(ServiceError, match="too old"):
        codes.redeem(made[0])
    now = PAGE_CODE_SECONDS - 0.1
    codes.redeem(made[1])
    now = float(PAGE_CODE_SECONDS)
    with pytest.raises(ServiceError, match="too old"):
        codes.redeem(made[2])


def test_the_page_names_nothing_of_others_and_writes_no_markup() -> None:
    forbidden = (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "new Function",
        "InnerHTML",
    )
    ours = [path for path in WEB.rglob("*") if path.is_file() and "vendor" not in path.parts]
    assert len(ours) > 30
    for path in ours:
        if path.suffix == ".png":
            continue
        text = path.read_text(encoding="utf-8")
        if path.name != "ravel.js":  # says in a comment how the address of a node looks
            assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), path
        assert "https://" not in text, path
        assert path.suffix != ".js" or not any(word in text for word in forbidden), path
    html = (WEB / "index.html").read_text(encoding="utf-8")
    assert " style=" not in html
    assert " onclick=" not in html


def test_each_icon_that_is_named_is_drawn() -> None:
    drawn = set(re.findall(r'id="i-(\w+)"', (WEB / "index.html").read_text(encoding="utf-8")))
    ours = "\n".join(path.read_text(encoding="utf-8") for path in WEB.rglob("views/*.js"))
    named = set(re.findall(r'(?:\$\{Icon\} name=|icon: )"(\w+)"', ours))
    assert len(named) > 20
    assert named <= drawn


def test_scripts_import_each_other_in_no_circle() -> None:
    scripts = [path.relative_to(WEB) for path in WEB.rglob("*.js") if "vendor" not in path.parts]
    imports = {
        str(path): {
            os.path.normpath(path.parent / one)
            for one in re.findall(r'from "(\..+)"', (WEB / path).read_text())
        }
        for path in scripts
    }
    assert set(TopologicalSorter(imports).static_order()) >= imports.keys()


def test_all_scripts_of_a_first_visit_are_asked_for_at_once() -> None:
    """Without this, a browser finds them one import after the other, five rounds deep."""
    html = (WEB / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'modulepreload" href="/web/([^"]+)"', html))
    assert named == _first_visit("en") - {"app.js"}, "English is asked for with all else"


async def test_a_file_that_a_browser_has_is_not_sent_again(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        del one.client.headers["Authorization"]
        first = await one.client.get("/web/app.js")
        again = await one.client.get("/web/app.js", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-security-policy" in again.headers
        other = await one.client.get("/web/app.js", headers={"If-None-Match": '"other"'})
        assert (other.status_code, other.content) == (200, first.content)


def test_every_text_that_is_shown_stands_in_the_file_of_texts() -> None:
    """Between tags of templates, and in attributes that are read to people, there are no words."""
    shown = re.compile(
        r"(?<![= ])>\s*[A-Za-z][a-z]+[^<>{}`=]*<|(?:aria-label|title|placeholder|alt)=\"[A-Za-z]"
    )
    for path in [*WEB.glob("views/*.js"), *WEB.glob("parts/*.js")]:
        assert shown.findall(path.read_text(encoding="utf-8")) == [], path


def test_files_are_short_and_scripts_fit_into_what_a_first_visit_may_load() -> None:
    for path in WEB.rglob("*.js"):
        if "vendor" not in path.parts:
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 600, path
    for language in ("en", "de"):
        sizes = [len(gzip.compress((WEB / one).read_bytes(), 9)) for one in _first_visit(language)]
        assert sum(sizes) < SCRIPTS_COMPRESSED_SIZE_MAX, (language, sum(sizes))


def test_each_code_of_a_refusal_has_its_meaning_in_german() -> None:
    meanings = re.findall(r"^  (\w+): \"", (WEB / "strings/de_errors.js").read_text("utf-8"), re.MULTILINE)
    assert sorted(meanings) == sorted(ERROR_KINDS), "in English the node's own words stand alone"
