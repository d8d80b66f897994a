"""The pytest plugin, as a project of yours has it: pytest runs in a process of its own, and finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.testing import ServerProcess, running
from bridgehead.testing.logs import KEPT, Logs

ROOT = Path(__file__).resolve().parent.parent.parent

APP = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with an application, and no settings of ours."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("BRIDGEHEAD_PORT", "1")
    pytester.makepyfile(greeting=APP)
    settle(pytester)
    return pytester


def settle(project: pytest.Pytester, *lines: str) -> None:
    """The project's settings: a warning of ours would be its error."""
    usual = ("filterwarnings = error", "asyncio_default_fixture_loop_scope = function")
    project.makeini("\n".join(["[pytest]", *usual, *lines]))


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_a_server_is_served_from_words_and_from_an_application(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import greeting
        import tempfile

        def test_words(serve_app):
            server = serve_app("greeting:app", access_log=True)
            assert server.client.get("/there").text == "hello"
            assert str(server.port) in server.url
            assert '"GET /there HTTP/1.1" 200' in server.logs.wait_for("/there")

        def test_words_on_a_thread(serve_app):
            server = serve_app("greeting:app", where="thread", access_log=True)
            assert server.client.get("/there").text == "hello"
            assert '"GET /there HTTP/1.1" 200' in server.logs.wait_for("/there")

        def test_no_access_lines_unless_asked_for(serve_app):
            server = serve_app("greeting:app", where="thread")
            assert server.client.get("/there").text == "hello"
            server.stop()
            assert "Shutting down" in server.logs
            assert "/there" not in server.logs

        def test_application(serve_app):
            assert serve_app(greeting.app).client.get("/").text == "hello"

        def test_several(serve_app):
            first, second = serve_app("greeting:app"), serve_app("greeting:app", where="thread")
            assert first.port != second.port

        def test_unix_socket(serve_app, load):
            # A path of pytest's is too long for a socket.
            server = serve_app("greeting:app", uds=tempfile.mkdtemp() + "/s")
            assert server.client.get("/").text == "hello"
            load(server, "/", requests=10, connections=1).assert_slo(errors=0)
        """
    )
    run(project).assert_outcomes(passed=6)


def test_a_server_of_tls_is_reached_as_any_other(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import greeting
        import pytest

        @pytest.mark.parametrize("app", ["greeting:app", greeting.app])
        def test_tls(serve_app, load, app, slow_client):
            server = serve_app(app, ssl_self_signed=True)
            assert server.url == f"https://127.0.0.1:{server.port}"
            assert server.ws_url == f"wss://127.0.0.1:{server.port}"
            assert server.client.get("/").text == "hello"
            load(server, "/", http="2", streams=4, connections=2, requests=20).assert_slo(errors=0)
            with pytest.raises(ValueError, match="in the clear"):
                slow_client(server)

        @pytest.mark.asyncio
        async def test_asynchronous(serve_app):
            async with serve_app("greeting:app", ssl_self_signed=True).async_client() as client:
                assert (await client.get("/")).text == "hello"

        def test_clear(serve_app):
            server = serve_app("greeting:app")
            assert server.ws_url == f"ws://127.0.0.1:{server.port}"
        """
    )
    run(project).assert_outcomes(passed=4)


def test_load_is_put_on_and_judged(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        def test_kept(serve_app, load):
            report = load(serve_app("greeting:app"), connections=4, requests=200)
            assert report.rps > 0
            assert report.p50 <= report.p99
            assert report.errors == 0
            report.assert_slo(p99="10s", p50=10, errors=0, rps=1)

        def test_broken(serve_app, load):
            report = load(serve_app("greeting:app"), connections=1, requests=20)
            report.assert_slo(p99=1e-9, rps=1e9)
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*answers a second, and * are due*", "*p99 is * is due*", "*requests  20 in *"]
    )


def test_asynchronous_tests_are_served_by_pytest_asyncio_and_by_anyio(project: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio")
    project.makepyfile(
        """
        import asyncio
        import pytest

        @pytest.mark.asyncio
        async def test_asyncio(serve_app, load):
            server = serve_app("greeting:app")
            async with server.async_client() as client:
                assert (await client.get("/")).text == "hello"
            report = await asyncio.to_thread(load, server, requests=20, connections=2)
            report.assert_slo(errors=0)

        @pytest.mark.anyio
        async def test_anyio(serve_app):
            async with serve_app("greeting:app").async_client() as client:
                assert (await client.get("/")).text == "hello"

        @pytest.mark.asyncio
        async def test_in_a_thread_beside_the_tests_own_loop(serve_app):
            import greeting
            async with serve_app(greeting.app).async_client() as client:
                assert (await client.get("/")).text == "hello"

        @pytest.fixture
        def anyio_backend():
            return "asyncio"
        """
    )
    run(project).assert_outcomes(passed=3)
    settle(project, "asyncio_mode = auto")
    run(project).assert_outcomes(passed=3)


def test_tests_run_side_by_side_with_xdist(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_each(serve_app, number):
            assert serve_app("greeting:app").client.get("/").text == "hello"
        """
    )
    run(project, "-n", "2").assert_outcomes(passed=6)


def test_a_server_that_does_not_end_well_fails_its_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        broken="""
        async def app(scope, receive, send):
            raise RuntimeError("not today")
        """,
        test_it="""
        def test_answered(serve_app):
            assert serve_app("broken:app").client.get("/").status_code == 500

        def test_allowed(serve_app):
            server = serve_app("broken:app", allow=["Traceback"])
            assert server.client.get("/").status_code == 500
            server.logs.wait_for("not today")

        def test_killed(serve_app):
            serve_app("greeting:app").kill()

        def test_killed_by_somebody_else(serve_app):
            server = serve_app("greeting:app")
            server.process.kill()
            server.process.wait()
        """,
    )
    result = run(project)
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["*the server said 'Traceback*", "*RuntimeError: not today*"])
    result.stdout.fnmatch_lines(["*ended by SIGKILL, and nobody called kill()*"])


SLIPPING = """
    import asyncio
    import gc
    import pytest
    from greeting import app as greet

    async def nothing():
        await asyncio.get_running_loop().create_future()

    async def forgets(scope, receive, send):
        if scope["type"] == "http":
            nothing()
        await greet(scope, receive, send)

    async def loses(scope, receive, send):
        if scope["type"] == "http":
            asyncio.ensure_future(nothing())
            await asyncio.sleep(0)
            gc.collect()
        await greet(scope, receive, send)

    @pytest.mark.parametrize("where", ["process", "thread"])
    @pytest.mark.parametrize("name", ["forgets", "loses"])
    def test_slips(serve_app, name, where):
        assert serve_app(f"test_it:{name}", where=where).client.get("/").text == "hello"
"""


def test_what_an_application_forgets_and_loses_fails_its_test_on_a_thread_as_well(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(test_it=SLIPPING)
    result = run(project, "-rfE")
    # By the warnings that are errors there, pytest fails the test itself.
    result.assert_outcomes(passed=3, failed=1, errors=3)
    result.stdout.fnmatch_lines(["FAILED*forgets-thread*PytestUnraisable*"])
    for case in ("forgets-process", "loses-process", "loses-thread"):
        result.stdout.fnmatch_lines([f"ERROR*{case}*"])


def test_what_the_tests_own_loop_says_is_no_complaint_of_a_server(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import greeting
        import logging

        def test_said_elsewhere(serve_app):
            server = serve_app(greeting.app)
            logging.getLogger("asyncio").error("Task was destroyed but it is pending!")
            server.stop()
        """
    )
    run(project).assert_outcomes(passed=1)


def test_a_server_whose_application_does_not_end_in_time_fails_its_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        hanging="""
        import asyncio
        from greeting import app as greet

        async def app(scope, receive, send):
            if scope["type"] != "lifespan":
                return await greet(scope, receive, send)
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.sleep(3600)
        """,
        test_it="""
        import pytest

        QUICK = {"timeout_lifespan_shutdown": 0.1}

        @pytest.mark.parametrize("where", ["process", "thread"])
        @pytest.mark.parametrize("log_format", ["text", "json"])
        def test_told(serve_app, where, log_format):
            server = serve_app("hanging:app", where=where, log_format=log_format, **QUICK)
            assert server.client.get("/").text == "hello"

        @pytest.mark.parametrize("where", ["process", "thread"])
        def test_allowed(serve_app, where):
            allow = ["Application shutdown took longer"]
            server = serve_app("hanging:app", where=where, allow=allow, **QUICK)
            assert server.client.get("/").text == "hello"
        """,
    )
    result = run(project)
    result.assert_outcomes(passed=6, errors=4)
    result.stdout.fnmatch_lines(["*the server said 'ERROR: *Application shutdown took longer*allow=*"])


def test_an_error_before_the_stop_is_the_tests_own_affair() -> None:
    logs = Logs()
    logs.add("ERROR:    Worker [1] died.")
    assert logs.complaints() == []
    logs.stops()
    # One that a pipe has kept.
    logs.add("ERROR:    Worker [2] died.")
    logs.add("INFO:     Shutting down")
    assert logs.complaints() == []
    logs.add("\x1b[31mERROR\x1b[0m:    Application shutdown failed.")
    logs.add("ERROR:root:a logger's own form")
    assert logs.complaints() == ["ERROR:    Application shutdown failed."]
    assert logs.complaints(("shutdown failed",)) == []


def test_a_server_that_cannot_start_says_why(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_nothing_there(serve_app):
            serve_app("nothing:app")

        def test_no_such_option(serve_app):
            serve_app("greeting:app", acces_log=False)
        """
    )
    result = run(project)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*no module*nothing*", "*no option 'acces_log'; did you mean `access_log`?*"]
    )


def test_a_log_keeps_its_last_lines() -> None:
    logs = Logs()
    for number in range(KEPT + 5):
        logs.add(f"line {number}")
    assert len(logs) == KEPT
    assert "line 4\n" not in logs
    assert logs.wait_for(f"line {KEPT + 4}") == f"line {KEPT + 4}"


def test_a_line_is_waited_for_however_long_its_server_has_run() -> None:
    with pytest.MonkeyPatch.context() as short:
        # It takes longer than this to begin, so it has by then.
        short.setattr("bridgehead.testing.in_process.STOP_SECONDS", 0.01)
        server = ServerProcess("bridgehead.testing.canary_app:app", lifespan="off").__enter__()
    server.__exit__(None, None, None)


def test_a_server_finds_what_pytest_finds_by_its_pythonpath(project: pytest.Pytester) -> None:
    source = project.mkdir("source")
    (project.path / "greeting.py").rename(source / "greeting.py")
    settle(project, "pythonpath = source")
    project.makepyfile(
        """
        def test_it(serve_app):
            assert serve_app("greeting:app").client.get("/").text == "hello"
        """
    )
    run(project).assert_outcomes(passed=1)


def test_a_test_run_that_asks_for_nothing_imports_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_it():
            ours = {name for name in sys.modules if name.startswith("bridgehead")}
            assert ours == {"bridgehead", "bridgehead.pytest_plugin"}
        """
    )
    run(project).assert_outcomes(passed=1)


def test_serving_imports_neither_the_plugin_nor_the_testing_package(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom bridgehead import Config, Server\n"
        "import bridgehead.cli, bridgehead.command, bridgehead.worker\n"
        "Server(Config('x:app'))\n"
        "ours = 'bridgehead.testing', 'bridgehead.pytest_plugin', 'bridgehead.load.'\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_example_project_passes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "."]
    folder = ROOT / "examples" / "testing"
    done = subprocess.run(
        [*command, "-c", "/dev/null"], cwd=folder, capture_output=True, text=True, timeout=55
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_without_httpx_a_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match="bridgehead\\[testing\\]"):
        _ = running("greeting:app").client
