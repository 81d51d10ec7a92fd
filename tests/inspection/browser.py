"""A headless Chromium that tests steer through a pipe, by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """One page; `errors` collects what its console complains about."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1600, height=900, deviceScaleFactor=1, mobile=False)

    def call(self, method: str, **params: Any) -> Any:
        """The result of a command; raises AssertionError for an error."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._back, 1 << 20)
            assert chunk, "the browser ended"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(answer["params"])[:500])
        return answer

    def open(self, path: Path) -> None:
        """Load a file and wait until its script has run."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def run(self, expression: str) -> Any:
        """The value of an expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        poll = f"new Promise(done => {{ const look = () => ({expression}) ? done(1) : setTimeout(look, 20); look(); }})"
        self.run(poll)

    def key(self, key: str) -> None:
        """Press a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def move(self, selector: str) -> None:
        """Move the mouse onto the first element that a selector finds."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.run(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box})")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def scheme(self, name: str) -> None:
        """Prefer a colour scheme: dark or light."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path: Path) -> None:
        """Save what is seen."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with an empty profile."""
    assert CHROMIUM is not None
    commands, answers = os.pipe(), os.pipe()
    line = (
        f'exec "$0" --headless=new --no-sandbox --disable-gpu --no-first-run --user-data-dir="$1" '
        f"--remote-debugging-pipe 3<&{commands[0]} 4>&{answers[1]}"
    )
    process = subprocess.Popen(
        ["/bin/bash", "-c", line, CHROMIUM, str(profile)],
        pass_fds=(commands[0], answers[1]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield Page(commands[1], answers[0])
    finally:
        os.close(commands[1])
        os.close(answers[0])
        process.terminate()
        process.wait(10)
