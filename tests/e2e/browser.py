"""A real headless Chromium, driven over a pipe by the DevTools protocol: no port, no further package."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.vendored import AXE

JsonObject = dict[str, Any]
CHROMIUM: Final = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
_ANSWER_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_OPTIONS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests may run as root; it loads nothing but the node's own page
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)


class Browser:
    """One page of one browser."""

    def __init__(self, process: "subprocess.Popen[bytes]", commands: int, answers: int) -> None:
        self._process = process
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._last = 0
        self._session = ""
        self.events: list[JsonObject] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> JsonObject:
        """One command, and its answer; what else happens is kept in `events`."""
        self._last += 1
        command: JsonObject = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            said = self._receive()
            if said.get("id") == self._last:
                assert "error" not in said, said
                result: JsonObject = said["result"]
                return result
            self.events.append(said)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  # whatever the page says, as JSON
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, address: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def reload(self) -> None:
        """Load the page again, and wait for that: what is asked of the page before is answered with an error."""
        loads = self._loads()
        self.call("Page.reload")
        while self._loads() == loads:
            self.events.append(self._receive())

    def _loads(self) -> int:
        return sum(event.get("method") == "Page.loadEventFired" for event in self.events)

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Wait until an expression holds in the page."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"not in time: {expression}\n{self.text()}"
            time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for

    def text(self) -> str:
        """What the page shows."""
        return str(self.evaluate("document.body.innerText"))

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key, which may type something."""
        for kind in ("keyDown", "keyUp"):
            said = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click on an element once it is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        self.evaluate(f"{found}.click()")

    def fill(self, selector: str, text: str) -> None:
        """Put a text into a field once it is there, as typing does."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        self.evaluate(f"{found}.focus(); {found}.select?.()")
        self.type(text)

    def choose_files(self, selector: str, *paths: Path) -> None:
        """Choose files in a field for files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        found = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=found, files=[str(path) for path in paths])

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps people out: rules with the elements that break them."""
        if not self.evaluate("Boolean(window.axe)"):
            self.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
        found = self.evaluate("axe.run(document).then((done) => done.violations)")
        return [
            f"{one['id']}: {node['html']} ({node['failureSummary']})"
            for one in found
            for node in one["nodes"]
        ]

    def show(self, width: int, height: int, theme: str) -> None:
        """Take a window's size, and a theme: light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, path: Path) -> None:
        """A picture of the page."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """What the browser's console said that is no good: errors of scripts, and what the page's policy forbade."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(str(event["params"]["entry"]["text"]))
        return found

    def requested(self) -> list[str]:
        """Addresses of everything that was fetched."""
        return [
            str(event["params"]["request"]["url"])
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def _receive(self) -> JsonObject:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], _ANSWER_SECONDS)
            assert ready, "the browser does not answer"
            some = os.read(self._answers, 1 << 16)
            assert some, "the browser has ended"
            self._buffer += some
        said, _, self._buffer = self._buffer.partition(b"\0")
        answer: JsonObject = json.loads(said)
        return answer


@contextmanager
def browser(folder: Path, *options: str) -> Iterator[Browser]:
    """A browser with a profile of its own in `folder`, and these options, ended afterwards."""
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
        yield Browser(process, commands, answers)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
