"""Whose a request's instructions are, by a file of callgrind's: each cost once, and none of a call."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

LOADTESTS = Path(__file__).resolve().parent.parent.parent / "loadtests"
COUNTS = """\
version: 1
events: Ir
ob=(1) /x/bridgehead/_native.cpython-311-x86_64-linux-gnu.so
fl=(1) ???
fn=(1) bridgehead_net::service::judge
0 100
cfn=(2) hyper::proto::h1::parse
calls=1 0
0 7000
cob=(2) /usr/lib/libpython3.11.so.1.0
cfn=(3) PyObject_Call
calls=2 0
0 9000
+3 20
fn=(2)
0 30
ob=(2)
fn=(3)
0 4
-2 6
ob=(3) /usr/lib/x86_64-linux-gnu/libc.so.6
fn=(4) memcpy
* 40
ob=(4) /x/uvloop/loop.cpython-311-x86_64-linux-gnu.so
fn=(5) uv__run
0 50
ob=(5) /x/pydantic_core/_pydantic_core.so
fn=(6) validate
0 60
"""


def test_each_cost_is_somebodys_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(LOADTESTS)
    script, cases = importlib.import_module("shares"), importlib.import_module("cases")
    found = script.shares(COUNTS)
    assert found == {
        "Bridgehead": 150,
        "CPython": 10,
        "C library": 40,
        "uvloop": 50,
        "others": 60,
    }
    one = cases.Case("one", connections=2, rounds=5)
    assert script.line(one, found) == "| one | 31 | 48% | 3% | 16% | 13% | 19% |"
