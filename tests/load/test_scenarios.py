"""Scenarios in TOML: every key, and every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.errors import StartError
from bridgehead.load import Scenario, Upload
from bridgehead.load.scenarios import read_scenarios

EVERYTHING = """
[[scenario]]
name = "write"
weight = 3
method = "POST"
path = "/items/{n}"
headers = { accept = "a", cookie = ["b", "c"] }
body = '{"id": "{uuid}"}'
think = ["50ms", 0.15]
expect = { status = [200, 201], contains = "ok", headers = { content-type = "json" } }

[[scenario]]
body-file = "body.bin"
think = "1s"
expect = { status = 204 }

[[scenario]]
upload = { size = "1M", chunk = 1000, every = "10ms", declared = true }
"""


def read(tmp_path: Path, text: str) -> tuple[Scenario, ...]:
    file = tmp_path / "s.toml"
    file.write_text(text)
    return read_scenarios(file, "/given")


def test_every_key_is_understood(tmp_path: Path) -> None:
    (tmp_path / "body.bin").write_bytes(b"\x00{n}")
    write, file, upload = read(tmp_path, EVERYTHING)
    assert write == Scenario(
        name="write",
        weight=3,
        method="POST",
        path="/items/{n}",
        headers=(("accept", "a"), ("cookie", "b"), ("cookie", "c")),
        body='{"id": "{uuid}"}',
        think=(0.05, 0.15),
        expect_status=(200, 201),
        expect_body=b"ok",
        expect_headers=(("content-type", "json"),),
    )
    assert (file.name, file.path, file.body, file.think) == ("GET /given", "/given", b"\x00{n}", (1, 1))
    assert file.expect_status == (204,)
    assert upload.upload == Upload(size=1024 * 1024, chunk=1000, every=0.01, declared=True)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "s.toml has no scenario", "[[scenario]]"),
        ("[scenario]\npath = '/'", "s.toml has no scenario", "[[scenario]]"),
        ("[[scenarios]]", "there is no key 'scenarios'", "`scenario`"),
        ("[[scenario]]\npaht = '/'", "scenario 1 (GET /given): there is no key 'paht'", "`path`"),
        ("[[scenario]]\nname = 'a'\nweight = -1", "scenario 1 (a): weight: -1 is not a whole number", ""),
        ("[[scenario]]\nthink = '1x'", "think: '1x' is not a number of seconds", "500ms"),
        ("[[scenario]]\nthink = [2, 1]", "think: [2, 1] ends before it begins", ""),
        ("[[scenario]]\nbody = 'a'\nbody-file = 'b'", "body-file: ", ""),
        ("[[scenario]]\nbody = 'a'\nupload = { size = 1 }", "body and upload are two bodies", ""),
        ("[[scenario]]\nupload = 5", "upload: 5 is not a table", "size"),
        ("[[scenario]]\nupload = { chunk = 5 }", "an upload has a size", ""),
        ("[[scenario]]\nexpect = { state = 1 }", "expect: there is no key 'state'", "`status`"),
        ("[[scenario]]\nexpect = { status = [] }", "no status is expected", "leave it out"),
        ("[[scenario]]\nexpect = { status = 99 }", "99 is not a whole number", ""),
        ("[[scenario]\n", "s.toml, line 1 is not TOML", "correct it"),
    ],
)
def test_a_mistake_says_where_it_is(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(StartError) as refused:
        read(tmp_path, text)
    assert message in refused.value.message
    assert hint in refused.value.hint
