"""The page for operators, as a browser shows it."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from browser import CHROMIUM, PATIENCE, Browser
from harness import UVICORN, Server, request
from operators import Operators

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has no such port")


def test_the_page_loads_nothing_but_the_status() -> None:
    with Server("framing_app:app", "--admin", "127.0.0.1:0") as server:
        status, page = Operators(server).ask("/")
    assert status == 200
    assert re.findall(r"(?:src|href|url)\s*[=(]", page) == []
    assert re.findall(r"https?://[^\"]*", page) == ["http://www.w3.org/2000/svg"] * 3, (
        "the name of a language"
    )
    assert '<html lang="en">' in page
    assert "prefers-color-scheme: dark" in page


# Light on dark or dark on light: what is written is to be read, as WCAG has it.
CONTRAST = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (each) => (each /= 255) <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const [r, g, b, a = 1] = parts(getComputedStyle(element).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const says = (node) => node.nodeType === 3 && node.textContent.trim();
  const written = [...document.querySelectorAll("body *")].filter((each) =>
    [...each.childNodes].some(says) && each.getClientRects().length);
  const ratio = (each) => {
    const [one, other] = [light(parts(getComputedStyle(each).color)), light(ground(each))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };
  return Math.min(...written.map(ratio));
})()"""
FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"


# It takes a browser's time, which on a busy machine is minutes; `make observability` runs it.
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_shows_everything_by_keyboard_screen_reader_light_and_dark(tmp_path: Path) -> None:
    pictures = Path(os.environ.get("BRIDGEHEAD_TEST_PICTURES", tmp_path))
    with Server("health_app:app", "--admin", "127.0.0.1:0") as server:
        operators = Operators(server)
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: b@d\r\n\r\n")
            client.read_response()
        server.ask("/hold?seconds=1.5&how=compute&route=/hold/{how}", timeout=PATIENCE)
        for _ in range(7):
            server.ask("/snapshot")
        operators.until(lambda: operators.status()["blocking"] != [])
        operators.until(lambda: len(operators.status()["history"]["at"]) > 1)
        with Browser(tmp_path / "profile") as browser:
            browser.open(f"http://127.0.0.1:{operators.port}/")
            browser.until("document.querySelectorAll('table').length === 5")
            browser.until("document.querySelectorAll('polyline').length >= 6")
            drawn = "[...document.querySelectorAll('polyline')].every((each) => each.getTotalLength() > 0)"
            assert browser.ask(drawn), "also where requests came but once"
            look_at_the_tables(browser, server)
            go_through_by_keyboard(browser)
            told = browser.read_out()
            assert ("status", "") in told or ("status", "ready") in told
            assert len([name for role, name in told if role in {"image", "img"} and ": " in name]) == 6
            tables = [name for role, name in told if role == "table"]
            assert "Places that held the loop, since the start" in tables
            assert "Slowest requests of the last 15 minutes" in tables
            assert ("columnheader", "took, ms") in told
            assert ("rowheader", "GET") in told
            for scheme in ("light", "dark"):
                browser.prefer(scheme)
                assert browser.ask(CONTRAST) >= 4.5, scheme
                browser.show(pictures / f"{scheme}.png")
            assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
            regions = [name for role, name in told if role == "region"]
            assert len(set(regions)) == len(regions) == 11
            look_at_the_axis(browser)
            # WCAG 2.2, 1.4.10: on so narrow a screen nothing is scrolled sideways but a table in its part.
            browser.resize(320)
            assert browser.ask("document.documentElement.scrollWidth") == 320
            browser.show(pictures / "narrow.png")
            assert browser.complaints == []
            listen_while_the_loop_is_held(browser, server)
            # Who says nothing is not ready, though the system still takes connections for it.
            for it, says in ((signal.SIGSTOP, "no answer"), (signal.SIGCONT, "ready")):
                os.kill(server.pid, it)
                browser.until(f"document.getElementById('state').textContent === '{says}'")


def listen_while_the_loop_is_held(browser: Browser, server: Server) -> None:
    """What is read aloud is why, and not for how long: that would be read again at every look."""
    state, silent = (
        "document.getElementById('state')",
        "not ready: worker 0: its loop has given no sign of life",
    )
    heard = f"globalThis.heard = []; new MutationObserver(() => heard.push({state}.textContent))"
    browser.ask(f"{heard}.observe({state}, {{ childList: true }})")
    with server.connect(timeout=PATIENCE) as client:
        client.send(request("/hold?seconds=8&how=python"))
        browser.until(f"{state}.textContent === '{silent}'")
        for_how_long = "document.querySelector('tbody tr').cells[1].textContent"
        before = browser.ask(for_how_long)
        browser.until(f"{for_how_long} !== '{before}'")
        assert client.read_response().body == b"held"
    browser.until(f"{state}.textContent === 'ready'")
    assert browser.ask("heard") == [silent, "ready"]


def look_at_the_axis(browser: Browser) -> None:
    """Four times under each plot, a third of the quarter of an hour apart, and the last look at the end."""
    axes = browser.ask(
        "[...document.querySelectorAll('svg')].map((each) =>"
        " [...each.nextElementSibling.children].map((time) => time.textContent))"
    )
    assert len(axes) == 6
    for axis in axes:
        minutes = [60 * int(time[:2]) + int(time[3:]) for time in axis]
        assert [(later - minutes[0]) % 1440 for later in minutes] == [0, 5, 10, 15]
    ends = browser.ask("[...document.querySelectorAll('polyline')].map((each) => [...each.points].at(-1).x)")
    assert 179 <= max(ends) <= 180


def look_at_the_tables(browser: Browser, server: Server) -> None:
    rows = browser.ask(
        "[...document.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    [slowest] = [row for row in rows if row[:3] == ["GET", "/hold", "/hold/{how}"]]
    assert slowest[3] == "200"
    assert float(slowest[4]) >= 1000
    assert re.search(r"\d\d:\d\d:\d\d", slowest[5])
    [place] = [row for row in rows if row[0].startswith("compute_in_python() at ")]
    assert place[1:4] == ["Python code", "GET /hold (route /hold/{how})", "1"]
    assert any(row[:2] == [str(server.pid), "serving"] for row in rows)
    assert ["GET", "200", "HTTP/1.1", "8"] in [row[:4] for row in rows]
    assert ["bad_host", "1"] in rows
    assert browser.ask("document.getElementById('state').textContent") == "ready"


def go_through_by_keyboard(browser: Browser) -> None:
    """Tab reaches the button and every part, in the order in which they are read."""
    reached = []
    for _ in range(12):
        browser.press("Tab", 9)
        reached.append(browser.ask(FOCUSED))
        if reached == ["Pause"]:
            browser.press(" ", 32, " ")
            assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
            assert browser.ask(FOCUSED) == "Pause", "a name that changes as well would say it twice"
            assert browser.ask(CONTRAST) >= 4.5
            browser.press(" ", 32, " ")
            assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == "false"
    titles = browser.ask("[...document.querySelectorAll('h2')].map((each) => each.textContent)")
    assert reached == ["Pause", *titles]
