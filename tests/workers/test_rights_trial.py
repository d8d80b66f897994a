"""`--user` and `--group` that cannot start Python, or read the application: said at once, and tried once."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import UVICORN

import bridgehead

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="of options that are ours"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else"),
]

STRANGER = 54321  # has no name, and no group
PACKAGES = str(Path(bridgehead.__file__).parent.parent)
APP = "app = print\nraise SystemExit('it was read')\n"
PROGRAM = "import sys; sys.executable = {!r}\nfrom bridgehead.cli import main; main()"
# Of linux/prctl.h and linux/capability.h.
PR_CAPBSET_DROP, CAP_SETGID, CAP_SETUID = 24, 6, 7


def refused(*command: str, cwd: Path, **settings: object) -> str:
    """What a start says that comes to nothing."""
    ended = subprocess.run(  # type: ignore[call-overload]
        [*command, "--port", "0"],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **settings,
    )
    assert (ended.returncode, ended.stdout) == (3, ""), ended.stderr
    assert ended.stderr.count("\n") == 2, ended.stderr
    return str(ended.stderr)


def strangers_python() -> list[str]:
    """The words that run Bridgehead by a Python that strangers may run."""
    environ = {**os.environ, "PYTHONPATH": PACKAGES}
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            ended = subprocess.run(
                [python, "-P", "-c", "import bridgehead._native"],
                env=environ,
                user=STRANGER,
                group=STRANGER,
                extra_groups=[],
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if ended.returncode == 0:
            return [python, "-P", "-m", "bridgehead"]
    pytest.skip("strangers may run no Python here that has the extension")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that strangers may enter, as pytest's are not, with an application."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "shop").mkdir()
        (place / "shop" / "main.py").write_text(APP)
        yield place


@pytest.mark.parametrize("more", [(), ("--workers", "2"), ("--reload",)])
def test_a_user_who_may_not_run_python_is_told_at_once(more: tuple[str, ...], folder: Path) -> None:
    shut = folder / "shut"
    shut.mkdir(mode=0o700)
    (shut / "python").symlink_to(sys.executable)
    program = PROGRAM.format(str(shut / "python"))
    words = [sys.executable, "-c", program, "shop.main:app", "--user", str(STRANGER), *more]
    said = refused(*words, cwd=folder)
    assert f"--user {STRANGER} may not run Python: {shut}/python\n  hint: {shut} is shut to them" in said
    assert f"`chmod o+x {shut}`" in said


@pytest.mark.parametrize("target", ["shop.main:app", "shop/main.py:app"])
def test_a_user_who_may_not_read_the_application_is_told_at_once(target: str, folder: Path) -> None:
    python, file = strangers_python(), folder / "shop" / "main.py"
    for part, mode in ((file, 0o600), (folder / "shop", 0o700)):
        part.chmod(mode)
        words = [*python, target, "--user", str(STRANGER), "--group", "12346"]
        said = refused(*words, cwd=folder, env={**os.environ, "PYTHONPATH": PACKAGES})
        assert f"--user {STRANGER} --group 12346 may not read the application: {file}\n" in said
        assert f"hint: {part} is shut to them" in said
        part.chmod(0o755)


def test_what_was_compiled_is_enough_to_be_read(folder: Path) -> None:
    """As Python has it; whoever has the rights gets as far as the application."""
    python, file = strangers_python(), folder / "shop" / "main.py"
    environ = {**os.environ, "PYTHONPATH": PACKAGES}
    subprocess.run([python[0], "-m", "compileall", "-q", str(file)], env=environ, check=True)
    file.chmod(0o600)
    ended = subprocess.run(
        [*python, "shop.main:app", "--user", str(STRANGER), "--port", "0"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 3
    assert "shop.main ended the process while it was imported (exit code it was read)" in ended.stderr


@pytest.mark.parametrize("more", [(), ("--workers", "2", "--umask", "077")])
def test_a_certificate_that_was_made_is_theirs_who_serve_with_it(more: tuple[str, ...], folder: Path) -> None:
    (folder / "shop" / "main.py").write_text("async def app(scope, receive, send): ...\n")
    words = [*strangers_python(), "shop.main:app", "--user", str(STRANGER), *more, "--ssl-self-signed"]
    environ = {**os.environ, "PYTHONPATH": PACKAGES}
    with subprocess.Popen(
        [*words, "--port", "0"], cwd=folder, env=environ, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        lines: list[str] = []
        while not lines or lines[-1]:
            lines.append(server.stderr.readline())
            if " running on https://" in lines[-1]:
                server.terminate()
                break
        rest = server.communicate(timeout=60)[1]
    assert server.returncode == 0, "".join([*lines, rest])


def test_a_python_whose_packages_may_not_be_read_is_told_at_once(folder: Path) -> None:
    python, shut = strangers_python(), folder / "shut"
    shut.mkdir(mode=0o700)
    (shut / "bridgehead").symlink_to(Path(bridgehead.__file__).parent)
    said = refused(
        *(*python, "shop.main:app", "--user", str(STRANGER)),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(shut)},
    )
    assert f"Python does not start with --user {STRANGER}: " in said
    assert "No module named 'bridgehead'" in said


def test_a_root_that_may_become_nobody_else_is_told_at_once(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def give_up() -> None:
        for each in (CAP_SETGID, CAP_SETUID):
            if libc.prctl(PR_CAPBSET_DROP, each, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl")

    words = [sys.executable, "-m", "bridgehead", "shop.main:app", "--user", str(STRANGER)]
    said = refused(*words, cwd=folder, preexec_fn=give_up)
    assert (
        f"--user {STRANGER}: this process may become nobody else\n  hint: grant this process CAP_SETUID"
        in said
    )
