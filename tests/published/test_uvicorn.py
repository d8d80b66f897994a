"""uvicorn's own tests of behaviour, with Bridgehead under its name.

From the source archive of the version whose names `bridgehead.compat.uvicorn` has, which pip fetches; none of
its text is here. Run by `make frameworks`.
Invariant: each file of theirs is run or left out with a reason, and each test in one that is run passes or is
named with its reason.
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
PASSED = 455
RUN = [
    *("test_config.py", "test_server.py", "test_main.py", "test_default_headers.py", "test_lifespan.py"),
    *("test_ssl.py", "test_subprocess.py", "test_compat.py", "importer/test_importer.py"),
    *("middleware/test_logging.py", "middleware/test_message_logger.py", "middleware/test_proxy_headers.py"),
    *("middleware/test_wsgi.py", "protocols/test_utils.py", "protocols/test_websocket.py"),
    *("supervisors/test_multiprocess.py", "supervisors/test_signal.py"),
]
LEFT_OUT = {
    "protocols/test_http.py": "bytes are handed to uvicorn's objects; tests/wire has sockets",
    "protocols/test_http2.py": "the same, and of its parser's; tests/http2",
    "benchmarks/test_http.py": "how long uvicorn's objects take",
    "benchmarks/test_ws.py": "how long uvicorn's objects take",
    "supervisors/test_reload.py": "its reloaders' steps, with parts replaced; tests/reload has files",
    "test_auto_detection.py": "which of uvicorn's classes is chosen",
    "test_cli.py": "an object of click's, asked what it called; tests/process has processes",
}
# What comes out otherwise, and why.
OTHERWISE = {
    "an object of uvicorn's protocols is asked for, made or fed": [
        *("test_concrete_http_class", "test_http2_requires_zttp_protocol"),
        *(
            "test_server_reject_connection_with_invalid_msg",
            "test_server_reject_connection_with_missing_body",
        ),
        *("test_server_multiple_websocket_http_response_start_events",),
        *("test_frame_after_close_handshake_is_ignored", "test_server_keepalive_ping_pong"),
        *("test_send_respects_write_backpressure", "test_close_waits_for_the_peer_close_frame"),
        *("test_close_resumes_reads_paused_on_an_unconsumed_message",),
        *("test_data_frame_while_closing_does_not_pause_reads",),
        *("test_data_frame_and_peer_close_frame_in_one_read", "test_ping_while_closing"),
        *("test_close_gives_up_when_the_peer_never_replies",),
        *("test_connection_lost_cancels_the_pending_close_timer",),
        *("test_shutdown_while_the_close_reply_is_pending", "test_connection_lost_unblocks_paused_send"),
        *("test_send_after_peer_close_raises_client_disconnected", "test_server_keepalive_disabled"),
    ],
    "an application that ends without a word has its WebSocket closed, before the handshake by 403": [
        *("test_missing_handshake", "test_asgi_return_value", "test_close_transport_on_asgi_return"),
    ],
    "a second accept is an error of the application's, and the WebSocket is closed with 1011": [
        *("test_duplicate_handshake",),
    ],
    "a disconnect has its reason, as ASGI 2.5 has it": [
        *("test_connection_lost_before_handshake_complete", "test_send_close_on_server_shutdown"),
        *("test_server_reject_connection", "test_server_reject_connection_with_response"),
        *("test_server_reject_connection_with_multibody_response",),
    ],
    "an answer that is whole has its length": ["test_server_reject_connection_with_body_nolength"],
    "the server's name is ours, and an application's own stands alone": [
        *("test_default_server_headers", "test_multiple_server_header"),
        *("test_add_additional_header", "test_default_default_headers"),
    ],
    "a context of Python's for TLS is asked for: refused with a word, or not there": [
        *("test_run_ssl_context_factory_default", "test_run_ssl_context_factory_custom"),
        *("test_ssl_context_factory_mutates_default", "test_ssl_context_factory_must_return_ssl_context"),
        *("test_default_ssl_context_factory_requires_ssl_certfile", "test_ssl_ciphers_applied_when_set"),
        *("test_is_ssl_true_when_only_factory_set",),
    ],
    "attributes of the configuration are ours: what to watch, levels by name, middleware that is Rust's": [
        *("test_reload_dir_is_set", "test_non_existant_reload_dir_is_not_set", "test_reload_subdir_removal"),
        *("test_reload_dir_subdirectories_are_removed", "test_reload_excluded_subdirectories_are_removed"),
        *("test_reload_includes_exclude_dir_patterns_are_matched",),
        *("test_should_warn_on_invalid_reload_configuration", "test_wsgi_app", "test_proxy_headers"),
        *("test_config_log_level", "test_forwarded_allow_ips_default", "test_env_file"),
        *("test_run_match_config_params", "test_config_access_log", "test_log_config_default"),
        *("test_limit_max_requests_jitter",),
    ],
    "the words of a message, or its exception, are ours": [
        *("test_app_unimportable_module", "test_app_unimportable_other", "test_app_factory"),
        *("test_custom_loop__not_importable_custom_loop_setup_function", "test_setup_event_loop_is_removed"),
        *("test_trace_logging", "test_trace_logging_on_ws_protocol", "test_message_logger"),
        *("test_message_logger_exc", "test_run_invalid_app_config_combination", "test_sigint_abort_req"),
        *("test_request_than_limit_max_requests_warn_log", "test_lifespan_with_failed_shutdown"),
        *("test_server_keepalive_ping_timeout", "test_ws_websockets_emits_deprecation_warning"),
    ],
    "it replaces what uvicorn calls inside, or looks at that": [
        *("test_log_config_json", "test_log_config_yaml", "test_log_config_yaml_missing_pyyaml"),
        *("test_log_config_pathlike", "test_log_config_file"),
        *("test_run_fails_fast_in_parent_on_bad_app_path", "test_run_skips_eager_app_import_with_workers"),
        *("test_run_imports_app_before_starting_event_loop", "test_deprecated_server_state_from_main"),
    ],
    "a descriptor of a socket that was never bound is refused, since nobody could reach it": [
        *("test_bind_fd_works_with_reload_or_workers", "test_running_log_using_fd"),
    ],
    "a reload is of as many workers as are asked for": ["test_warn_when_using_reload_and_workers"],
    "a lifespan that says nothing is no working one where it is asked for": ["test_lifespan_scope_asgi3app"],
    "whoever tells a server to end while it starts does not wait for the start": [
        *("test_shutdown_on_early_exit_during_startup",),
    ],
    "it counts each line of the log, and a busy machine's says that the loop was held": [
        "test_default_logging"
    ],
    "the client's own transport may be gone while it still writes": [
        *("test_send_binary_data_to_server_bigger_than_default_on_websockets",),
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


def plain(name: str) -> str:
    """A test's own name, without its module and its parameters."""
    return name.partition("::")[2].partition("[")[0]


def test_each_file_of_theirs_is_run_or_left_out_with_a_reason(suite: Path) -> None:
    files = {path.relative_to(suite / "tests").as_posix() for path in (suite / "tests").rglob("test_*.py")}
    assert files == {*RUN, *LEFT_OUT}


@pytest.mark.timeout(2 * SECONDS)
def test_uvicorns_own_tests_of_behaviour_pass(
    suite: Path, record_property: Callable[[str, object], None]
) -> None:
    came = outcomes(suite)
    known = {name for names in OTHERWISE.values() for name in names}
    broken = sorted(name for name, outcome in came.items() if outcome not in ("", "skipped"))
    assert [name for name in broken if plain(name) not in known] == []
    assert known <= {plain(name) for name in came}
    passed = sum(outcome == "" for outcome in came.values())
    assert passed >= PASSED
    record_property("summary", f"uvicorn {__version__}: {passed} of its {len(came)} tests pass")
