"""A headless Chromium, driven over a pipe by the DevTools protocol: no port, no further package."""

import base64
import json
import os
import select
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.e2e.browser import CHROMIUM, CTRL, Browser, JsonObject
from tests.support.machine import patience

_ANSWER_SECONDS: Final = 30.0
_OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests may run as root; it loads nothing but the node's own page
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)


class Pipe:
    """The pipe to one Chromium, over which all its pages are driven."""

    def __init__(self, commands: int, answers: int) -> None:
        self.events: defaultdict[str, list[JsonObject]] = defaultdict(list)
        """Events so far, by the session with the page that they happened in."""
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._last = 0

    def call(self, method: str, session: str = "", **parameters: object) -> JsonObject:
        """One command to a page, or to the browser, and its answer; what else happens is kept in `events`."""
        self._last += 1
        command: JsonObject = {"id": self._last, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            said = self.receive()
            if said.get("id") == self._last:
                assert "error" not in said, said
                result: JsonObject = said["result"]
                return result

    def receive(self) -> JsonObject:
        """The next answer or event."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], patience(_ANSWER_SECONDS))
            assert ready, "the browser does not answer"
            some = os.read(self._answers, 1 << 16)
            assert some, "the browser has ended"
            self._buffer += some
        said, _, self._buffer = self._buffer.partition(b"\0")
        answer: JsonObject = json.loads(said)
        if "id" not in answer:
            self.events[answer.get("sessionId", "")].append(answer)
        return answer


class Chromium(Browser):
    """One page of one Chromium, in a profile that others share or in one that is named."""

    def __init__(self, pipe: Pipe, **profile: str) -> None:
        target = pipe.call("Target.createTarget", url="about:blank", **profile)["targetId"]
        self._pipe = pipe
        self._session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events = pipe.events[self._session]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Of several windows one alone would have the focus.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: object) -> JsonObject:
        """One command, and its answer."""
        return self._pipe.call(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  # whatever the page says, as JSON
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def reload(self) -> None:
        known = len(self.events)
        self.call("Page.reload")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events[known:]):
            self._pipe.receive()

    def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        for kind in ("rawKeyDown" if modifiers else "keyDown", "keyUp"):
            said: JsonObject = {"text": text} if text and kind == "keyDown" else {}
            if modifiers:
                said["modifiers"] = modifiers
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said)

    def select_all(self) -> None:
        key = {"key": "a", "windowsVirtualKeyCode": 65, "modifiers": CTRL, "commands": ["selectAll"]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def choose_in_dialog(self, act: Callable[[], None], path: Path) -> None:
        self.call("Page.setInterceptFileChooserDialog", enabled=True)
        act()
        opened: list[JsonObject] = []
        while not opened:
            self.evaluate("0")  # events come with answers
            opened = [one["params"] for one in self.events if one.get("method") == "Page.fileChooserOpened"]
        self.call("DOM.setFileInputFiles", files=[str(path)], backendNodeId=opened[-1]["backendNodeId"])
        self.call("Page.setInterceptFileChooserDialog", enabled=False)

    def save_into(self, folder: Path) -> None:
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def choose_files(self, selector: str, *paths: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        found = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=found, files=[str(path) for path in paths])

    def show(self, width: int, height: int, theme: str) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(str(details.get("exception", details).get("description", details)))
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(str(event["params"]["entry"]["text"]))
        return found

    def requested(self) -> list[str]:
        return [
            str(event["params"]["request"]["url"])
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium(folder: Path, *options: str) -> Iterator[Chromium]:
    """A page of a Chromium with a profile of its own in `folder`, and these options, ended afterwards."""
    with started(folder, *options) as pipe:
        yield Chromium(pipe)


@contextmanager
def fresh(pipe: Pipe) -> Iterator[Chromium]:
    """A page in a new profile of a Chromium that runs, which is forgotten afterwards."""
    profile = pipe.call("Target.createBrowserContext")["browserContextId"]
    page = Chromium(pipe, browserContextId=profile)
    try:
        yield page
    finally:
        pipe.call("Target.disposeBrowserContext", browserContextId=profile)
        page.events.clear()


@contextmanager
def started(folder: Path, *options: str) -> Iterator[Pipe]:
    """A Chromium with a profile in `folder`, and these options, ended afterwards."""
    assert CHROMIUM is not None
    theirs_in, commands = os.pipe()
    answers, theirs_out = os.pipe()
    # Chromium takes commands on descriptor 3 and answers on 4; a shell can put ours there.
    shell = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash"]
    process = subprocess.Popen(
        [*shell, CHROMIUM, *_OPTIONS, *options, f"--user-data-dir={folder}"],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Pipe(commands, answers)
    finally:
        # Killed, it loses what pages have stored in the last seconds.
        with suppress(OSError, subprocess.TimeoutExpired):
            os.write(commands, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            process.wait(patience(5))
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
