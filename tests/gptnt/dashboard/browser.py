"""A headless Chromium, driven over the pipe of its own protocol, so that no driver is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60


def find_chromium():
    """The path of the browser, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def _moved(fd, least):
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(fd)
    return moved


class Browser:
    """One page of one browser. ``complaints`` holds what the console shows: errors, warnings, exceptions."""

    def __init__(self, program):
        self._profile = tempfile.TemporaryDirectory(prefix="rowproof-chromium-")
        down, self._write = os.pipe()
        self._read, up = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        options += ["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]
        command = [program, *options, f"--user-data-dir={self._profile.name}", "about:blank"]
        # The protocol speaks on file descriptors 3 and 4; copies above them survive while those are set.
        down, up = (_moved(fd, 10) for fd in (down, up))

        def connect():
            os.dup2(down, 3)
            os.dup2(up, 4)

        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet, pass_fds=(3, 4), preexec_fn=connect)
        os.close(down)
        os.close(up)
        self._buffer = b""
        self._number = 0
        self._session = None
        self.complaints = []
        self.requests = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait(TIMEOUT_S)
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method, **params):
        """One call of the protocol and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _receive(self):
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"the browser must answer within {TIMEOUT_S} s"
            part = os.read(self._read, 1 << 16)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, page, fragment=""):
        """Load a file afresh and wait until it has drawn itself."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.resolve().as_uri() + fragment)
        self.wait("document.body?.dataset.ready !== undefined")

    def js(self, expression):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition):
        """Wait until an expression is true."""
        deadline = time.monotonic() + TIMEOUT_S
        while not self.js(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"must become true: {condition}"
            time.sleep(0.05)

    def key(self, name):
        """Press and let go a key."""
        text = {" ": " "}.get(name, "")
        code = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, " ": 32}[name]
        event = {"key": name, "windowsVirtualKeyCode": code, "code": "Space" if name == " " else name}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def look(self, width, height, dark=False):
        """Set the size of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path, whole=False):
        """Write a picture of the page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))
