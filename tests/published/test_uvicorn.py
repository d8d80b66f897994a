"""uvicorn's own tests of behaviour, with Bridgehead under its name.

From the source archive of the version whose names `bridgehead.compat.uvicorn` has, which pip fetches; none of
its text is here. Run by `make frameworks`. Left out whole: `protocols`, `benchmarks` and
`supervisors/test_reload.py`, which feed bytes to uvicorn's classes and look into its reloaders, and
`test_cli.py`, which looks at click's words.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from bridgehead.compat.uvicorn import __version__

HERE = Path(__file__).resolve().parent
SECONDS = 400
# How many passed when this was last looked at: fewer is a failure.
PASSED = 395
RUN = [
    *("test_config.py", "test_server.py", "test_main.py", "test_default_headers.py", "test_lifespan.py"),
    *("test_ssl.py", "test_subprocess.py", "test_compat.py", "importer", "middleware"),
    *("supervisors/test_multiprocess.py", "supervisors/test_signal.py"),
]
# What comes out otherwise, by the beginning of the name, and why.
OTHERWISE = {
    "a class of uvicorn's protocols is handed over: refused with a word": [
        *(
            "test_concrete_http_class",
            "test_contextvars_preserved_by_default",
            "test_reset_contextvars_asyncio",
        ),
        *("test_proxy_headers_websocket_x_forwarded_proto", "test_http2_requires_zttp_protocol"),
        *(
            "test_trace_logging_on_http_protocol",
            "test_trace_logging_on_ws_protocol",
            "test_ws_websockets_emits",
        ),
    ],
    "a context of Python's for TLS is asked for: refused with a word, or not there": [
        *("test_run_ssl_context_factory", "test_ssl_context_factory", "test_default_ssl_context_factory"),
        *("test_ssl_ciphers_applied_when_set", "test_is_ssl_true_when_only_factory_set"),
    ],
    "attributes of the configuration are ours: what to watch, levels by name, middleware that is Rust's": [
        *("test_reload_dir_is_set", "test_non_existant_reload_dir", "test_reload_subdir_removal"),
        *(
            "test_reload_dir_subdirectories",
            "test_reload_excluded_subdirectories",
            "test_reload_includes_exclude",
        ),
        *(
            "test_should_warn_on_invalid_reload",
            "test_wsgi_app",
            "test_proxy_headers",
            "test_config_log_level",
        ),
        *("test_forwarded_allow_ips_default", "test_env_file", "test_run_match_config_params"),
        *("test_config_access_log", "test_log_config_default"),
    ],
    "the words of a message, or its exception, are ours": [
        *("test_app_unimportable", "test_app_factory", "test_warn_when_using_reload_and_workers"),
        *("test_custom_loop__not_importable", "test_setup_event_loop_is_removed", "test_trace_logging"),
        *("test_lifespan_with_failed_shutdown", "test_add_additional_header", "test_default_default_headers"),
        *("test_message_logger", "test_run_invalid_app_config_combination", "test_sigint_abort_req"),
        *("test_request_than_limit_max_requests_warn_log", "test_limit_max_requests_jitter"),
    ],
    "it replaces what uvicorn calls inside, or looks at that": [
        *("test_log_config_json", "test_log_config_yaml", "test_log_config_pathlike", "test_log_config_file"),
        *(
            "test_run_fails_fast",
            "test_run_skips_eager",
            "test_run_imports_app",
            "test_build_environ_encoding",
        ),
        *("test_deprecated_server_state_from_main"),
    ],
    "a descriptor of a socket that was never bound is refused, since nobody could reach it": [
        *("test_bind_fd_works", "test_running_log_using_fd"),
    ],
    "a lifespan that says nothing is no working one where it is asked for": ["test_lifespan_scope_asgi3app"],
    "whoever tells a server to end while it starts does not wait for the start": [
        "test_shutdown_on_early_exit"
    ],
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive without the package: the one that is tested is ours."""
    folder = tmp_path_factory.mktemp("uvicorn")
    fetch = ["pip", "download", "--quiet", "--no-deps", "--no-binary", "uvicorn", "--dest", str(folder)]
    command = [sys.executable, "-m", *fetch, f"uvicorn=={__version__}"]
    subprocess.run(command, check=True, timeout=SECONDS)
    (archive,) = folder.glob("uvicorn-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("uvicorn-*") if path.is_dir())
    (unpacked / "uvicorn").rename(unpacked / "not-this-one")
    (unpacked / "pyproject.toml").unlink()
    return unpacked


def outcomes(suite: Path) -> dict[str, str]:
    report = suite / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "uvicorn_names", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "--timeout=30", f"--junitxml={report}", *(f"tests/{each}" for each in RUN)],
        cwd=suite,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        stdout=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    )
    return {
        f"{case.get('classname')}::{case.get('name')}": "".join(child.tag for child in case)
        for case in ElementTree.parse(report).iter("testcase")
    }


@pytest.mark.timeout(2 * SECONDS)
def test_uvicorns_own_tests_of_behaviour_pass(
    suite: Path, record_property: Callable[[str, object], None]
) -> None:
    came = outcomes(suite)
    known = tuple(f"::{name}" for names in OTHERWISE.values() for name in names)
    broken = sorted(name for name, outcome in came.items() if outcome not in ("", "skipped"))
    assert [name for name in broken if not any(each in name for each in known)] == []
    passed = sum(outcome == "" for outcome in came.values())
    assert passed >= PASSED
    record_property("summary", f"uvicorn {__version__}: {passed} of its {len(came)} tests pass")
