"""A headless Chromium over its pipe: pages are opened, asked, used and photographed; no port is opened."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
AT_3_AND_4 = """
import fcntl, os, sys
first, second = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1:3])
os.dup2(first, 3)
os.dup2(second, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Runs a program with these pipes as file descriptors 3 and 4, where Chromium looks for them."""
SECONDS = 300
"""The most that one answer may take."""


class Browser:
    """Chromium with one page."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", AT_3_AND_4, str(theirs_in), str(theirs_out), CHROMIUM, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._events: deque[dict[str, Any]] = deque()
        self._session: str | None = None
        try:
            self._attach()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def processor_seconds(self) -> float:
        """What its processes have used: not what other tests take meanwhile."""
        browser = psutil.Process(self._process.pid)
        seconds = 0.0
        for process in (browser, *browser.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # it has ended
                seconds += sum(process.cpu_times()[:2])
        return seconds

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(1600, 900)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (found := self._receive()).get("id") != self._number:
            self._events.append(found)
        assert "error" not in found, found["error"]
        result: dict[str, Any] = found["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 20)
            assert data, "Chromium has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, url: str) -> list[str]:
        """Opens a page; returns what went wrong while it was loaded: errors, and what it asked for outside of files."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")
        return self.faults

    @property
    def faults(self) -> list[str]:
        """What went wrong since a page was opened."""
        return [fault for event in self._events if (fault := _fault(event))]

    def wait(self, expression: str) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + SECONDS
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"not true after {SECONDS} s: {expression}"
            time.sleep(0.02)

    def ask(self, expression: str) -> Any:
        """Returns the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def point_at(self, selector: str) -> None:
        """Moves the mouse onto the first element that a selector finds."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.ask(f"(box => [box.x + box.width / 2, box.y + box.height / 2])({box})")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def use_scheme(self, name: str) -> None:
        """Prefers `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def resize(self, width: int, height: int) -> None:
        """Gives the window a size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def photograph(self, path: Path) -> None:
        """Writes a picture of what the window shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def _fault(event: dict[str, Any]) -> str:
    """What an event says is wrong; an empty text if nothing is."""
    params = event.get("params", {})
    match event.get("method"):
        case "Runtime.exceptionThrown":
            return str(params["exceptionDetails"].get("exception", {}).get("description", params))
        case "Log.entryAdded" if params["entry"]["level"] == "error":
            return str(params["entry"]["text"])
        case "Network.requestWillBeSent" if not params["request"]["url"].startswith(("file:", "data:")):
            return f"asked for {params['request']['url']}"
        case "Network.loadingFailed" if not params.get("canceled"):
            return f"not loaded: {params.get('errorText')}"
    return ""
