"""A real Chromium without a window, spoken to through a pipe; for tests of pages."""

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-quic --no-first-run --disable-dev-shm-usage --remote-debugging-pipe"
).split()
PATIENCE = 120  # seconds: the machine may do other things
# The browser reads commands from descriptor 3 and answers to 4.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Enter": ("Enter", 13, "\r"), " ": ("Space", 32, " ")}


def found():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser; ``faults`` are errors, warnings and loads by network."""

    def __init__(self, folder):
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        call = [found(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(theirs), str(answers), *call],
            pass_fds=(theirs, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(answers)
        self._numbers, self._buffer, self._session = itertools.count(1), b"", None
        self.faults, self._loaded = [], False
        (target, *_) = [
            t
            for t in self.call("Target.getTargets")["targetInfos"]
            if t["type"] == "page"
        ]
        target = {"targetId": target["targetId"], "flatten": True}
        self._session = self.call("Target.attachToTarget", **target)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        """A command of the DevTools protocol; its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._hear(answer)

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], end - time.monotonic())
            assert ready, "the browser says nothing"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event):
        method, told = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.faults.append(told)
        elif method == "Log.entryAdded":
            self.faults.append(told["entry"])
        elif method == "Network.requestWillBeSent":
            url = told["request"]["url"]
            self.faults += [url] * (not url.startswith(("file:", "data:")))

    @contextlib.contextmanager
    def without_faults(self, path, width):
        """Inside it shows a file; nothing may go wrong until the end."""
        self.faults.clear()
        self.open(path, width)
        yield self
        self.value("1")  # hears what was said until now
        assert self.faults == []

    def open(self, path, width, dark=False):
        """Shows a file in a window so wide, once it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._hear(self._next())

    def value(self, expression):
        """What JavaScript gives, as JSON."""
        told = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def click(self, selector):
        """A real click in the middle of the first such element."""
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def press(self, key):
        """A real key, to what has the focus."""
        code, number, text = KEYS[key]
        for kind, more in (("keyDown", {"text": text}), ("keyUp", {})):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code,
                windowsVirtualKeyCode=number,
                **more,
            )
