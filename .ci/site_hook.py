"""What mkdocs is told beside mkdocs.yml: hooks for each page of `make docs`.

GitHub shows a cell's `a\\|b` as `a|b`, and Python's Markdown keeps the backslash if it is code. Code in
a cell is broken where a reader would (`site.css`), and a table of sentences is a list of cards on a phone.
Invariant: nothing but tables is touched, and none of their words is another afterwards.
"""

import re
from html import escape
from itertools import count
from typing import Any

_CELL = re.compile(r"<t[dh][^>]*>.*?</t[dh]>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
# Behind a blank, a bar, an underscore, and between two options.
_PIECE = re.compile(r"(?:[^ |_/]|/(?!--))*(?:[ |_]|/(?=--)|$)")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEAD = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
# So many columns of which one has a sentence are more than a phone's screen shows side by side.
_COLUMNS = 4
_SENTENCE = 60
# A name that is no longer than this is not cut between its words.
_SHORT = 18


def on_page_content(html: str, **_: Any) -> str:
    """The page with its bars as they were meant."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_post_page(output: str, **_: Any) -> str:
    """The page as it is shown. The search has been told of its words before."""
    return _TABLE.sub(lambda table: _shown(table[0]), output)


def _shown(table: str) -> str:
    heads = [_words(each) for each in _HEAD.findall(table)]
    if len(heads) >= _COLUMNS and any(len(_words(cell[0])) > _SENTENCE for cell in _CELL.finditer(table)):
        table = table.replace("<table>", "<table data-cards>", 1)
        table = _ROW.sub(lambda row: _labelled(row[0], heads), table)
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: _pieces(code[0]), cell[0]), table)


def _labelled(row: str, heads: list[str]) -> str:
    """Each cell with the word above it."""
    number = count()
    return re.sub("<td", lambda cell: f'{cell[0]} data-head="{escape(heads[next(number)])}"', row)


def _pieces(code: str) -> str:
    """Each piece that stays on one line."""
    pieces = [""]
    for each in _PIECE.findall(code):
        if pieces[-1].endswith(("_", "|")) and len(pieces[-1]) < _SHORT:
            pieces[-1] += each
        else:
            pieces.append(each)
    return "<wbr>".join(f"<span>{each}</span>" for each in pieces if each)


def _words(html: str) -> str:
    return _TAG.sub("", html).strip()
