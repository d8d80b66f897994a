"""An application's page in Chromium, used as a person uses it: for those that have no other client.

Not a test: each `client.py` says what it does with the page, and prints what it saw.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import CHROMIUM, Browser

SHOWN = "document.body.innerText"


class Page:
    """A page that is open."""

    def __init__(self, browser: Browser, port: str) -> None:
        self._browser = browser
        self._base = f"http://127.0.0.1:{port}"

    def open(self, path: str = "/") -> None:
        """Go there."""
        self._browser.open(self._base + path)

    def shows(self, text: str) -> str:
        """Wait until it shows this, and say so."""
        self._browser.until(f"document.body && {SHOWN}.includes({json.dumps(text)})")
        return text

    def has(self, selector: str) -> None:
        """Wait until there is such an element."""
        self._browser.until(f"document.querySelector({json.dumps(selector)}) !== null")

    def click(self, selector: str) -> None:
        """Click the first such element."""
        self.has(selector)
        self._browser.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def write(self, selector: str, text: str, *, enter: bool = False) -> None:
        """Put the cursor there and type."""
        self.has(selector)
        self._browser.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self._browser.command("Input.insertText", text=text)
        if enter:
            self._browser.press("Enter", 13, "\r")

    def ask(self, expression: str) -> object:
        """What it comes to in the page."""
        return self._browser.ask(expression)

    @property
    def complaints(self) -> list[str]:
        """What went wrong in the page, as its console has it."""
        told = [json.loads(each) for each in self._browser.complaints]
        entries = [each.get("entry") or each["exceptionDetails"] for each in told]
        return sorted(f"{each['text']} {each.get('url', '').replace(self._base, '')}" for each in entries)


@contextmanager
def page(port: str) -> Iterator[Page]:
    """A browser of its own for the application on this port."""
    if CHROMIUM is None:
        sys.exit("it is asked by Chromium, and there is none here: leave it out (NAMES=…)")
    with Browser(Path.cwd() / "browser") as browser:
        yield Page(browser, port)
