"""Headless Chromium by its debugging pipe: messages of JSON, each with a zero byte behind it."""

import json
import os
import shutil
import subprocess
import sys
import time

import browser

PROGRAM = os.environ.get("RUSHLIGHT_CHROMIUM") or next(filter(None, map(shutil.which, browser.NAMES)), None)
# The browser reads from 3 and writes to 4.
MOVE = """
import fcntl, os, sys
given = [fcntl.fcntl(int(text), fcntl.F_DUPFD, 10) for text in sys.argv[1:3]]
for to, one in zip((3, 4), given):
    os.dup2(one, to)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page in a browser of its own; `with Page(address, folder) as page`."""

    def __init__(self, address, folder):
        self.address, self.folder = address, folder
        self.sent, self.waiting = 0, b""
        self.errors = []  # what scripts threw, and the console was told

    def __enter__(self):
        to_read, self.to = os.pipe()
        self.from_, to_write = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        flags += [f"--user-data-dir={self.folder}", "--disable-dev-shm-usage", "--disable-extensions"]
        self.browser = subprocess.Popen(
            [sys.executable, "-c", MOVE, str(to_read), str(to_write), PROGRAM, *flags, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=self.address)
        return self

    def __exit__(self, *_):
        os.close(self.to)  # it ends when nobody talks to it any more
        try:
            self.browser.wait(20)
        except subprocess.TimeoutExpired:
            self.browser.kill()
            self.browser.wait()
        os.close(self.from_)

    session = None

    def call(self, method, **parameters):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._take(answer)

    def _read(self):
        while b"\0" not in self.waiting:
            chunk = os.read(self.from_, 1 << 16)
            assert chunk, f"{PROGRAM} ended"
            self.waiting += chunk
        text, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(text)

    def _take(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(event["params"]["exceptionDetails"])
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.errors.append(event["params"]["entry"])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression, seconds=60):
        """The value of the expression once it is true."""
        end = time.monotonic() + seconds
        while True:
            if value := self.evaluate(expression):
                return value
            shown = self.evaluate("document.body?.innerText")
            assert time.monotonic() < end, (
                f"{expression} did not come; the page says:\n{shown}\n{self.errors}"
            )
            time.sleep(0.1)

    def mouse(self, kind, x, y):
        down = kind != "mouseReleased"
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=int(down), clickCount=1
        )

    def stroke(self, points):
        self.mouse("mousePressed", *points[0])
        for x, y in points[1:]:
            self.mouse("mouseMoved", x, y)
        self.mouse("mouseReleased", *points[-1])
