"""A headless Firefox, driven by WebDriver BiDi, which it speaks itself over a WebSocket: no driver between."""

import base64
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.browser import CTRL, FIREFOX, Browser, JsonObject
from tests.support.machine import patience

_ANSWER_SECONDS: Final = 30.0
_START_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_SERVER: Final = "WebDriverBiDiServer.json"
"""The file of its profile in which Firefox states its port."""
_KEYS: Final = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Tab": "\ue004",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
_CTRL_KEY: Final = "\ue009"
_EVENTS: Final = ("log.entryAdded", "network.beforeRequestSent")
_TELL_POLICY: Final = """() => addEventListener("securitypolicyviolation", (event) =>
  console.error(`Security Policy: ${event.violatedDirective} of ${event.blockedURI}`))"""


class Line:
    """The connection to one Firefox, over which all its pages are driven."""

    def __init__(self, connection: ClientConnection, downloads: Path) -> None:
        self.downloads = downloads
        self.events: defaultdict[str, list[JsonObject]] = defaultdict(list)
        """Events so far, by the page that they happened in."""
        self._connection = connection
        self._last = 0
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=[*_EVENTS])
        self.call("script.addPreloadScript", functionDeclaration=_TELL_POLICY)

    def call(self, method: str, **parameters: object) -> JsonObject:
        """One command, and its answer; what else happens is kept in `events`."""
        self._last += 1
        self._connection.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            said: JsonObject = json.loads(self._connection.recv(timeout=patience(_ANSWER_SECONDS)))
            if said.get("id") == self._last:
                assert said["type"] == "success", said
                result: JsonObject = said["result"]
                return result
            if told := said.get("params"):
                self.events[told.get("source", told).get("context")].append(said)


class Firefox(Browser):
    """One page of one Firefox."""

    has_themes = False
    shows_barriers = False
    presses_buttons = False

    def __init__(self, line: Line, context: str) -> None:
        self._line = line
        self._context = context
        self.events = line.events[context]

    def call(self, method: str, **parameters: object) -> JsonObject:
        """One command, and its answer."""
        return self._line.call(method, **parameters)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  # whatever the page says, as JSON
        answer = self.call(
            "script.evaluate",
            expression=expression,
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        assert answer["type"] == "success", answer
        return _value_of(answer["result"])

    def open(self, address: str) -> None:
        self.call("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def reload(self) -> None:
        self.call("browsingContext.reload", context=self._context, wait="complete")

    def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        self._press(_KEYS.get(key, text or key), holds_ctrl=modifiers == CTRL)

    def select_all(self) -> None:
        self._press("a", holds_ctrl=True)

    def type(self, text: str) -> None:
        self.evaluate(f"document.execCommand('insertText', false, {json.dumps(text)})")

    def choose_files(self, selector: str, *paths: Path) -> None:
        locator = {"type": "css", "value": selector}
        [found] = self.call("browsingContext.locateNodes", context=self._context, locator=locator)["nodes"]
        element = {"sharedId": found["sharedId"]}
        self.call("input.setFiles", context=self._context, element=element, files=[str(one) for one in paths])

    def choose_in_dialog(self, act: Callable[[], None], path: Path) -> None:
        pytest.skip("Firefox tells of no dialog for files before version 141")

    def save_into(self, folder: Path) -> None:
        downloads = self._line.downloads
        if downloads.is_symlink():
            downloads.unlink()
        elif downloads.exists():  # made at the start; it is empty
            downloads.rmdir()
        downloads.symlink_to(folder)

    def show(self, width: int, height: int, theme: str) -> None:
        viewport = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=self._context, viewport=viewport, devicePixelRatio=1)

    def screenshot(self, path: Path) -> None:
        taken = self.call("browsingContext.captureScreenshot", context=self._context)["data"]
        path.write_bytes(base64.b64decode(taken))

    def complaints(self) -> list[str]:
        return [str(said["text"]) for said in self._said("log.entryAdded") if said["level"] == "error"]

    def requested(self) -> list[str]:
        return [str(said["request"]["url"]) for said in self._said("network.beforeRequestSent")]

    def _said(self, method: str) -> Iterator[JsonObject]:
        return (event["params"] for event in self.events if event.get("method") == method)

    def _press(self, key: str, *, holds_ctrl: bool) -> None:
        held = [("keyDown", _CTRL_KEY)] if holds_ctrl else []
        steps = [*held, ("keyDown", key), ("keyUp", key), *(("keyUp", one) for _, one in held)]
        actions = [{"type": kind, "value": value} for kind, value in steps]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.call("input.performActions", context=self._context, actions=[source])


def _value_of(remote: JsonObject) -> Any:  # noqa: ANN401  # as JSON has it
    """Return a value of the page, as BiDi tells it."""
    kind, value = remote["type"], remote.get("value")
    if kind == "array":
        return [_value_of(one) for one in value or ()]
    if kind == "object":
        return {key: _value_of(one) for key, one in value or ()}
    return value if kind in ("string", "number", "boolean") else None


@contextmanager
def firefox(folder: Path, languages: str = "") -> Iterator[Firefox]:
    """A page of a Firefox with a profile of its own in `folder` that asks for these languages, ended afterwards."""
    with started(folder, languages) as line:
        yield Firefox(line, line.call("browsingContext.getTree")["contexts"][0]["context"])


@contextmanager
def fresh(line: Line) -> Iterator[Firefox]:
    """A page of a Firefox that runs, with storage of its own, which is forgotten afterwards."""
    user = line.call("browser.createUserContext")["userContext"]
    context = line.call("browsingContext.create", type="window", userContext=user)["context"]
    try:
        yield Firefox(line, context)
    finally:
        line.call("browser.removeUserContext", userContext=user)
        line.events.pop(context, None)


@contextmanager
def started(folder: Path, languages: str = "") -> Iterator[Line]:
    """A Firefox with a profile in `folder` that asks for these languages, ended afterwards."""
    assert FIREFOX is not None
    folder.mkdir(parents=True, exist_ok=True)
    downloads = folder / "downloads"
    preferences: dict[str, object] = {
        "browser.download.folderList": 2,
        "browser.download.dir": str(downloads),
        "browser.download.always_ask_before_handling_new_types": False,
        "datareporting.policy.dataSubmissionEnabled": False,
    }
    if languages:
        preferences["intl.accept_languages"] = languages
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
    (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
    (folder / _SERVER).unlink(missing_ok=True)  # of an earlier start
    process = subprocess.Popen(
        [FIREFOX, "--headless", "--no-remote", "--profile", str(folder), "--remote-debugging-port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = _port_of(folder, process)
        # Without pings, for which a thread would draw from the `random` module while Hypothesis watches that.
        with connect(f"ws://127.0.0.1:{port}/session", max_size=None, ping_interval=None) as connection:
            line = Line(connection, downloads)
            yield line
            line.call("browser.close")  # what pages have stored is written
            process.wait(patience(_ANSWER_SECONDS))
    finally:
        process.kill()
        process.wait()


def _port_of(folder: Path, process: "subprocess.Popen[bytes]") -> int:
    """Wait until Firefox states the port on which it takes commands."""
    deadline = time.monotonic() + patience(_START_SECONDS)
    while True:
        assert process.poll() is None, "Firefox has ended"
        assert time.monotonic() < deadline, "Firefox does not start"
        try:
            return int(json.loads((folder / _SERVER).read_text(encoding="utf-8"))["ws_port"])
        except (OSError, ValueError):
            time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for
