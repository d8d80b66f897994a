"""The site of the documents, without building it: `make docs` does that, and CI has not its packages.

Not its menu and its links: those are the pages' (`test_docs.py`).
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
MENU = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
# Calls it as the theme does, and prints what its worker is handed.
ASKS = """
globalThis.Worker = class { postMessage(message) { console.log(JSON.stringify(message)); } };
require(process.argv[1]);
const worker = new Worker();
for (const message of JSON.parse(process.argv[2])) worker.postMessage(message);
"""


TABLE = """<table>
<thead>
<tr>
<th>option</th>
<th>default</th>
<th>what it does</th>
<th></th>
</tr>
</thead>
<tbody>
<tr>
<td><code>--http2/--no-http2</code> ≠</td>
<td>on</td>
<td>{sentence}</td>
<td style="text-align: right;"><code>BRIDGEHEAD_TIMEOUT_KEEP_ALIVE</code></td>
</tr>
</tbody>
</table>"""


@pytest.fixture(scope="module")
def hook() -> Any:
    """What mkdocs is told for each page."""
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / ".ci" / "site_hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words_of(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_code_in_a_cell_is_broken_between_words_and_never_at_a_hyphen(hook: Any) -> None:
    table = TABLE.format(sentence="short")
    page = f"<p><code>a_b c</code></p>{table}<pre><code>x_y z</code></pre>"
    shown = hook.on_post_page(page)
    assert words_of(shown) == words_of(page)
    assert "<code><span>--http2/</span><wbr><span>--no-http2</span></code>" in shown
    assert "<code><span>BRIDGEHEAD_TIMEOUT_</span><wbr><span>KEEP_ALIVE</span></code>" in shown
    assert shown.startswith("<p><code>a_b c</code></p>")
    assert shown.endswith("<pre><code>x_y z</code></pre>")


def test_a_table_of_sentences_has_what_a_phone_shows_as_cards(hook: Any) -> None:
    table = TABLE.format(sentence="so many words that four columns of them are wider than a phone " * 2)
    shown = hook.on_post_page(table)
    assert words_of(shown) == words_of(table)
    assert shown.startswith("<table data-cards>")
    assert re.findall(r'<td data-head="([^"]*)"', shown) == ["option", "default", "what it does", ""]
    assert "data-" not in hook.on_post_page(TABLE.format(sentence="42"))


def test_what_the_site_has_of_its_own_is_laid_out() -> None:
    script = (ROOT / ".ci" / "docs").read_text(encoding="utf-8")
    for name in re.findall(r"^extra_\w+: \[(\S+)\]$", MENU, re.M):
        assert (ROOT / ".ci" / name).is_file()
        assert f".ci/{name} " in script


def test_an_option_is_searched_for_as_it_is_written() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    asked = ["--static", "what --static -b does", "timeout-keep-alive", "- a", "--"]
    messages = [{"type": 2, "data": each} for each in asked] + [{"type": 0, "data": {"docs": ["--x"]}}]
    command = [node, "-e", ASKS, str(ROOT / ".ci" / "site.js"), json.dumps(messages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    handed = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    assert handed == ["static", "what static b does", "timeout-keep-alive", "- a", "--", {"docs": ["--x"]}]
