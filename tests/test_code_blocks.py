"""Every block of code in the documents is taken at its word, as far as the table says.

| block | what is done |
|---|---|
| Python with an `app` | it is served and asked, but for one that wants a database (`tests/coordination`) |
| other Python | it compiles, and what it imports of ours is there; it is not run |
| commands | bash reads them; ours have words that exist, others are known by name; none is run |
| TOML, variables, JSON | they are read, settings by what reads them |
| nginx, HAProxy | the program checks it, where it is installed or unpacked |
| a Dockerfile | what the image starts has words that exist |

Not prose, and not pictures of letters, which a block without a language may be.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Server, WebSocket

from bridgehead.command_line import read_command_line
from bridgehead.config import OPTIONS, Config
from bridgehead.env_file import read_env_file
from bridgehead.load.command import _parser as load_parser
from bridgehead.load.scenarios import read_scenarios
from bridgehead.settings import read_settings

sys.path.insert(0, str(Path(__file__).resolve().parent / "proxies"))
from real_proxies import environment, nginx_paths, program

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*/README.md"))]
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M)) | {
    each
    for line in re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)
    for each in line.split()
}


def blocks() -> Iterator[object]:
    for page in PAGES:
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
            line = page.read_text(encoding="utf-8").count("\n", 0, match.start()) + 1
            name = f"{page.relative_to(ROOT)}:{line}"
            yield pytest.param(match[1], match[2], id=name)


@pytest.mark.parametrize(("language", "text"), [*blocks()])
def test_a_block_is_what_it_says(language: str, text: str, tmp_path: Path) -> None:
    judge = LANGUAGES.get(language)
    assert judge is not None, f"a block of {language}, which no test reads"
    judge(text, tmp_path)


def python(text: str, folder: Path) -> None:
    """It compiles, what it imports of ours is there, and an application in it answers."""
    tree = compile(text, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bridgehead"):
            if node.module == "bridgehead.contrib.gunicorn" and not shutil.which("gunicorn"):
                continue
            there = importlib.import_module(node.module or "")
            for each in node.names:
                assert hasattr(there, each.name) or importlib.import_module(f"{node.module}.{each.name}")
    names = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in names_of(node)}
    functions = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    if (
        "app" in names | functions and "postgresql://" not in text
    ):  # tests/coordination serves that with a database
        (folder / "main.py").write_text(text)
        serves(folder, websocket='"websocket"' in text)


def names_of(node: ast.Assign) -> Iterator[ast.Name]:
    return (each for each in node.targets if isinstance(each, ast.Name))


def serves(folder: Path, *, websocket: bool) -> None:
    with Server("main:app", "--lifespan", "off" if websocket else "auto", cwd=folder) as server:
        if websocket:
            with server.connect() as client:
                talk = WebSocket(client)
                talk.send_text("hello")
                assert talk.read_frame().payload == b"hello"
        else:
            assert server.ask("/").status == 200


def toml(text: str, folder: Path) -> None:
    """Settings that are read without complaint, or scenarios."""
    assert tomllib.loads(text)
    (folder / "pyproject.toml").write_text(text)
    if "[tool.bridgehead]" in text:
        assert read_settings({}, {}, folder, None).config.app
    else:
        assert read_scenarios(folder / "pyproject.toml", "/")


def shell(text: str, folder: Path) -> None:
    """Each command is one of ours with words that it takes, or another that is named here."""
    script = re.sub(r"^\$ ", "", text, flags=re.M)
    read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=20)
    assert read.returncode == 0, read.stderr
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words:
            COMMANDS[Path(words[0]).name](words[1:], folder)


def serve(words: list[str], _: Path) -> None:
    line = read_command_line(words)
    assert not line.doubts
    Config(
        **{
            option.name: option.read(line.given[option.name].value)
            for option in OPTIONS
            if option.name in line.given
        }
    )


def bridgehead(words: list[str], folder: Path) -> None:
    if words[:1] == ["load"]:
        _, unknown = load_parser().parse_known_args(words[1:])
        assert unknown == []
    else:
        serve(words, folder)


def make(words: list[str], _: Path) -> None:
    assert words[0] in TARGETS


def python_command(words: list[str], folder: Path) -> None:
    if words[:1] == ["-m"]:
        assert importlib.import_module(words[1])
        if words[1] == "bridgehead":
            serve(words[2:], folder)


def other(words: list[str], _: Path) -> None:
    """A command of somebody else's: that it is spelled is all that can be judged here."""
    assert words


def unmarked(text: str, folder: Path) -> None:
    """A picture, a file of variables, or commands; what is printed below a command is a picture."""
    if re.search(r"^(?:export )?[A-Z]+=", text, re.M) and "$ " not in text:
        (folder / "env").write_text(text)
        assert read_env_file(str(folder / "env"), {})
    elif text.startswith("$ "):
        shell("\n".join(line for line in text.splitlines() if line.startswith("$ ")), folder)
    elif Path(text.split(maxsplit=1)[0]).name in COMMANDS:
        shell(text, folder)


def json_text(text: str, _: Path) -> None:
    assert json.loads(text)


def dockerfile(text: str, folder: Path) -> None:
    """What it starts is a command line that is understood."""
    entry = re.search(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.M)
    assert entry is not None
    command, *words = json.loads(entry[1])
    COMMANDS[command](words, folder)


def nginx(text: str, folder: Path) -> None:
    """nginx itself takes it, where it is installed."""
    path = program("nginx")
    if path is None:
        pytest.skip("nginx is not installed")
    pid, log = folder / "pid", folder / "log"
    body = text.replace("listen 80", "listen 127.0.0.1:18080")
    http = f"access_log {log};\n{nginx_paths(folder)}{body}\n"
    (folder / "nginx.conf").write_text(f"pid {pid};\nevents {{}}\nhttp {{\n{http}}}\n")
    done = subprocess.run(
        [path, "-t", "-e", str(log), "-c", str(folder / "nginx.conf")],
        capture_output=True,
        text=True,
        timeout=20,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr


def haproxy(text: str, folder: Path) -> None:
    """HAProxy itself takes it, where it is installed."""
    path = program("haproxy")
    if path is None:
        pytest.skip("HAProxy is not installed")
    (folder / "haproxy.cfg").write_text(text)
    done = subprocess.run(
        [path, "-c", "-f", str(folder / "haproxy.cfg")],
        capture_output=True,
        text=True,
        timeout=20,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


COMMANDS: dict[str, Callable[[list[str], Path], None]] = {
    "serve": serve,
    "bridgehead": bridgehead,
    "make": make,
    "python": python_command,
    "python3": python_command,
    **dict.fromkeys(
        ["nghttp", "curl", "pip", "gunicorn", "fastapi", "kubectl", "systemctl", "docker"], other
    ),
}
LANGUAGES: dict[str, Callable[[str, Path], None]] = {
    "": unmarked,
    "python": python,
    "toml": toml,
    "sh": shell,
    "json": json_text,
    "dockerfile": dockerfile,
    "nginx": nginx,
    "haproxy": haproxy,
}
