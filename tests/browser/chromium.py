"""A page in headless Chromium, driven through the DevTools pipe. Python standard library alone."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """Path of a Chromium or Chrome; None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Page:
    """One page. `requests` and `messages` collect what it asked the network for and what it
    logged, exceptions included."""

    def __init__(self, chromium, width=1300, height=1000):
        self.profile = tempfile.mkdtemp(prefix="rooflash-browser-")
        read_end, self.to_browser = os.pipe()
        self.from_browser, write_end = os.pipe()
        # The browser reads commands on descriptor 3 and answers on descriptor 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{read_end} 4>&{write_end}', "sh", chromium,
             "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
             f"--window-size={width},{height}", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(read_end, write_end), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_end)
        os.close(write_end)
        self.buffer = b""
        self.next_id = 0
        self.session = None
        self.width, self.height = width, height
        self.events, self.requests, self.messages = [], [], []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def _receive(self, timeout):
        deadline = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise TimeoutError("no answer from the browser")
            data = os.read(self.from_browser, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(json.dumps(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        self.events.append(method)

    def call(self, method, timeout=60, **params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(timeout)
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, url, timeout=60):
        """Loads `url`; returns the seconds until its load event."""
        self.events.clear()
        start = time.monotonic()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._note(self._receive(timeout))
        return time.monotonic() - start

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def media(self, media="", scheme="light"):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def viewport(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def screenshot(self, path, selector=None):
        """The whole page, or the element that `selector` finds."""
        options = {}
        if selector:
            x, y, width, height = self.evaluate(
                f"(() => {{ const box = document.querySelector({json.dumps(selector)})"
                ".getBoundingClientRect(); return [box.x + scrollX, box.y + scrollY, box.width, "
                "box.height]; })()")
            options["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           **options)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def pdf(self, path):
        answer = self.call("Page.printToPDF", printBackground=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", timeout=5)
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        self.process.wait(timeout=20)
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)
