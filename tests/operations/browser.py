"""A headless Chromium that is driven as a person would: by keys, and by what a screen reader is told.

Not a server. It speaks the browser's own protocol over one WebSocket; each command waits for its answer.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from websockets.sync.client import connect

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--no-proxy-server", "--disable-extensions", "--remote-debugging-port=0", "--window-size=1200,1600"),
]
PATIENCE = 120.0  # a browser on a busy machine


class Browser:
    """Open from `with` to its end, with one page."""

    def __init__(self, folder: Path) -> None:
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._kept = ExitStack()
        self._number = 0
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        address = self._wait(lambda: re.search(r"DevTools listening on (ws://\S+)", "".join(self._said)))[1]
        opened = connect(address, max_size=None, open_timeout=PATIENCE, proxy=None)
        self._socket = self._kept.enter_context(opened)
        self._session: str | None = None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Accessibility"):
            self.command(f"{part}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        self._socket.send(json.dumps(asked))
        while True:
            heard = json.loads(self._socket.recv(timeout=PATIENCE))
            if heard.get("method") in {"Runtime.exceptionThrown", "Log.entryAdded"}:
                self.complaints.append(json.dumps(heard["params"]))
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                result: dict[str, Any] = heard["result"]
                return result

    def ask(self, expression: str) -> Any:
        """What the page comes to."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Until it holds."""
        self._wait(lambda: self.ask(expression) or None)

    def open(self, address: str) -> None:
        self.command("Page.navigate", url=address)

    def press(self, key: str, code: int, text: str = "") -> None:
        named = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.command("Input.dispatchKeyEvent", type="keyUp", **named)

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as the system says."""
        self.command(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def resize(self, width: int) -> None:
        """A screen that is so wide, as of a phone, or of a page that is looked at four times as large."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        self.command("Emulation.setDeviceMetricsOverride", **size)

    def read_out(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader is told of."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        told = [node for node in nodes if not node.get("ignored")]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in told]

    def show(self, path: Path) -> None:
        """A picture of the whole page."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)

    def _wait(self, found: Any) -> Any:
        deadline = time.monotonic() + PATIENCE
        while (it := found()) is None:
            assert time.monotonic() < deadline, "".join(self._said[-20:])
            time.sleep(0.02)
        return it
