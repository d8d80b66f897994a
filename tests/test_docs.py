"""The documents say what is there: their numbers, links, options and names are those of the code.

Not `docs/settings.md`, which is generated and has its own test.
"""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from bridgehead.aliases import ALIASES, LOGS, MEANINGLESS, MEANINGLESS_SWITCHES, SWITCHES
from bridgehead.command_line import WORDS, read_command_line
from bridgehead.config import OPTIONS, Config
from bridgehead.discovery import FILES
from bridgehead.load.command import COMPARE
from bridgehead.load.command import OPTIONS as LOAD
from bridgehead.options import Option, Shape
from bridgehead.patience import Patience
from bridgehead.uvicorn_defaults import UVICORN
from bridgehead.uvicorn_parameters import UVICORNS

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md")),
    ROOT / "examples" / "README.md",
    ROOT / "loadtests" / "README.md",
]
SOURCES = [*sorted(ROOT.glob("crates/*/src/*.rs")), *sorted((ROOT / "python").rglob("*.py"))]
FLAGS = {option.flag: option for option in OPTIONS if option.shape is not Shape.TARGET}
# What gunicorn 27.0.1 and granian 2.8.7 have; the page for those who come from there names each.
THEIRS = {
    "From gunicorn": """
--config --bind --backlog --workers --worker-class --threads --worker-connections --max-requests
--max-requests-jitter --timeout --graceful-timeout --keep-alive --limit-request-line
--limit-request-fields --limit-request-field_size --reload --reload-engine --reload-extra-file
--spew --check-config --print-config --preload --no-sendfile --reuse-port --chdir --daemon --env
--pid --worker-tmp-dir --user --group --umask --initgroups --forwarded-allow-ips
--access-logfile --disable-redirect-access-to-syslog --access-logformat --error-logfile
--log-file --log-level --capture-output --logger-class --log-config --log-config-json
--log-syslog-to --log-syslog --log-syslog-prefix --log-syslog-facility
--enable-stdio-inheritance --statsd-host --dogstatsd-tags --statsd-prefix
--enable-backlog-metric --name --pythonpath --paste --paster --proxy-protocol --proxy-allow-from
--protocol --uwsgi-allow-from --keyfile --certfile --ssl-version --cert-reqs --ca-certs
--suppress-ragged-eofs --do-handshake-on-connect --ciphers --http-protocols --http2-cleartext
--http2-max-concurrent-streams --http2-initial-window-size --http2-max-frame-size
--http2-max-header-list-size --paste-global --permit-obsolete-folding --strip-header-spaces
--permit-unconventional-http-method --permit-unconventional-http-version --casefold-http-method
--forwarder-headers --header-map --asgi-loop --asgi-lifespan --asgi-disconnect-grace-period
--websocket-max-message-size --http-parser --root-path --dirty-app --dirty-workers
--dirty-timeout --dirty-threads --dirty-graceful-timeout --control-socket --control-socket-mode
--no-control-socket
""",
    "From granian": """
--host --port --uds --uds-permissions --interface --http --ws --workers --blocking-threads
--blocking-threads-idle-timeout --runtime-threads --runtime-blocking-threads --runtime-mode
--loop --task-impl --backlog --backpressure --http1-buffer-size --http1-header-read-timeout
--http1-keep-alive --http1-pipeline-flush --http2-adaptive-window
--http2-initial-connection-window-size --http2-initial-stream-window-size
--http2-keep-alive-interval --http2-keep-alive-timeout --http2-max-concurrent-streams
--http2-max-frame-size --http2-max-headers-size --http2-max-send-buffer-size --log --log-level
--log-config --access-log --access-log-fmt --ssl-certificate --ssl-keyfile
--ssl-keyfile-password --ssl-protocol-min --ssl-ca --ssl-crl --ssl-client-verify
--url-path-prefix --respawn-failed-workers --respawn-interval --rss-sample-interval
--rss-samples --workers-lifetime --workers-max-rss --workers-kill-timeout --factory
--working-dir --env-files --static-path-route --static-path-mount --static-path-dir-to-file
--static-path-expires --metrics --metrics-scrape-interval --metrics-address --metrics-port
--reload --reload-paths --reload-ignore-dirs --reload-ignore-patterns --reload-ignore-paths
--reload-tick --reload-ignore-worker-failure --process-name --pid-file --no-log --no-access-log
--no-reload --no-factory --no-metrics --no-ssl-client-verify --no-respawn-failed-workers
--no-reload-ignore-worker-failure --no-http1-keep-alive --no-http1-pipeline-flush
--no-http2-adaptive-window
""",
}
OF_CTL = {"--wait"}
# Named by the README as not there: it has to change when they come.
ABSENT: set[str] = set()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def rows(path: str, heading: str) -> Iterator[list[str]]:
    """The cells of the table below a heading, without its first two lines."""
    section = text_of(ROOT / path).split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def unmarked(cell: str) -> tuple[str, bool]:
    """A row's first cell without ≠, and whether it was there."""
    return cell.removesuffix("≠").strip().strip("`"), cell.endswith("≠")


def test_the_configuration_page_says_which_values_are_paths() -> None:
    section = text_of(ROOT / "docs" / "configuration.md").split("\n## The configuration file\n")[1]
    [paths] = re.findall(r"- Paths are relative.*?An `", section, re.S)
    for option in OPTIONS:
        assert (f"`{option.toml_key}`" in paths) == (option.anchor is not None), option.name


# --- numbers


def test_the_limits_page_has_every_option_with_its_default_and_uvicorns() -> None:
    shown = list(rows("docs/limits.md", "Options"))
    assert [unmarked(row[0])[0] for row in shown] == [option.flags for option in FLAGS.values()]
    for option, (name, default, theirs, _) in zip(FLAGS.values(), shown, strict=True):
        marked = unmarked(name)[1]
        assert default == option.shown_default, name
        assert marked == bool(option.differs) == (default != theirs), name


def test_the_limits_page_has_uvicorns_own_defaults() -> None:
    uvicorn = pytest.importorskip("uvicorn")
    theirs = vars(uvicorn.Config("x:app", log_config=None))
    for option, row in zip(FLAGS.values(), rows("docs/limits.md", "Options"), strict=True):
        # The command's own defaults; uvicorn's `Config` has no `app_dir`, and knows the log level as none.
        # `Config` forgets the env file once it is read.
        if option.name not in {"app_dir", "log_level", "env_file", "ssl_ciphers"}:
            known = option.name in theirs
            assert row[2] == (shown(option, theirs[option.name]) if known else "no such option"), option.name


def test_the_limits_page_has_what_compat_makes_of_the_defaults() -> None:
    options = [option for option in OPTIONS if option.name in UVICORN]
    due = [
        [f"`{option.flags}`", option.shown_default, shown(option, UVICORN[option.name])] for option in options
    ]
    assert list(rows("docs/limits.md", "As in uvicorn")) == due


def shown(option: Option, value: object) -> str:
    return replace(option, default=tuple(value) if isinstance(value, list) else value).shown_default


BOUNDS = [row for row in rows("docs/limits.md", "Bounds that are no options") if row[4] != "hyper"]


@pytest.mark.parametrize("row", BOUNDS, ids=lambda row: row[4])
def test_a_bound_of_the_limits_page_is_the_constant_in_the_code(row: list[str]) -> None:
    name, here, theirs, _, where = row
    file, constant = where.replace("`", "").split()
    assert quantity(here) == pytest.approx(constant_of(file, constant))
    assert unmarked(name)[1] == (here != theirs)


def test_the_threats_of_the_limits_page_have_the_options_and_the_words_of_the_code() -> None:
    refusals = text_of(ROOT / "crates" / "bridgehead-net" / "src" / "refusal.rs")
    counted = refusals + text_of(ROOT / "crates" / "bridgehead-net" / "src" / "tally.rs")
    names = set(re.findall(r'=> "([a-z0-9_]+)"', counted))
    section = text_of(ROOT / "docs" / "limits.md").split("\n## Threats\n")[1].split("\n## ")[0]
    assert (
        set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+|silence|flood|crowd|shortage|overloaded)`", section))
        == names
    )
    for threat, limit, default, _, said, counter in rows("docs/limits.md", "Threats"):
        assert counter == "–" or counter.strip("`") in names, threat
        flag, differs = unmarked(limit)
        if flag == "–":
            assert default == "always", threat
        else:
            option = FLAGS[flag]
            assert (default, differs) == (option.shown_default, bool(option.differs)), threat
        assert said == "–" or f'"{said}"' in counted, threat


def quantity(shown: str) -> float:
    units = {"": 1, "KiB": 1024, "MiB": 1024**2, "ms": 0.001, "s": 1, "%": 0.01}
    number, _, unit = shown.partition(" ")
    return float(number) * units[unit]


def constant_of(file: str, name: str) -> float:
    [source] = [
        path for path in SOURCES if path.name == file and re.search(rf"\b{name}\b.* = ", text_of(path))
    ]
    found = re.search(
        rf"^(?:pub(?:\(crate\))? )?(?:const )?{name}(?:: \w+)? = ([^;#\n]+)", text_of(source), re.M
    )
    assert found is not None, f"{file} has no {name}"
    words = found[1].strip()
    if duration := re.fullmatch(r"Duration::from_(secs|millis)\((\d+)\)", words):
        return int(duration[2]) * {"secs": 1, "millis": 0.001}[duration[1]]
    return product(re.sub(r"[A-Z_]{3,}", lambda other: str(int(constant_of(file, other[0]))), words))


def product(words: str) -> float:
    first, *others = re.split(r" ([*/]) ", words)
    value = float(first)
    for sign, factor in zip(others[::2], others[1::2], strict=True):
        value = value * float(factor) if sign == "*" else value / float(factor)
    return value


def test_the_backpressure_page_has_the_constants_of_the_exchange() -> None:
    page = text_of(ROOT / "docs" / "backpressure.md")
    marks = re.findall(r"^\| `([A-Z_]+)` \| ([\d]+(?: KiB)?) \|", page, re.M)
    assert [name for name, _ in marks] == ["HIGH_WATER", "CHUNKS", "LOW_WATER", "JOINED"]
    for name, value in marks:
        assert quantity(value) == constant_of("exchange.rs", name)
    assert f"**{constant_of('budget.rs', 'MESSAGES'):.0f} messages**" in page
    assert f"**{constant_of('budget.rs', 'SHARE') * 1000:.0f} ms**" in page


def test_the_shutdown_page_divides_the_time_as_the_worker_does() -> None:
    page = text_of(ROOT / "docs" / "shutdown.md")
    shares = re.findall(r"^\| (\d+) \| ([\d.]+)[^|]* \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert len(shares) == 5
    for whole, *parts in shares:
        patience = Patience.of(Config(timeout_graceful_shutdown=float(whole)), {})
        due = [patience.requests, patience.cancelling, patience.lifespan]
        assert [round(part, 2) for part in due] == [float(part) for part in parts]
        assert sum(due) == pytest.approx(max(float(whole), 1))
    assert f"That\nis {Patience.of(Config(), {}).longest:g} s after the signal by default" in page


def test_the_configuration_page_names_the_files_an_application_is_found_in() -> None:
    page = " ".join(text_of(ROOT / "docs" / "configuration.md").split())
    assert f"the first file that is there of {', '.join(f'`{each}`' for each in FILES)}," in page


def test_the_applications_of_the_page_have_the_versions_that_are_pinned() -> None:
    shown = {row[0] for row in rows("docs/uvicorn.md", "Published applications")}
    pinned = {
        line.replace("==", " ")
        for file in ROOT.glob("tests/applications/*/requirements.txt")
        for line in text_of(file).splitlines()
        if line.partition("==")[0] == text_of(file).split()[1].partition("[")[0]
    }
    assert shown == pinned


def test_the_menu_of_the_site_has_every_page_once() -> None:
    listed = re.findall(r"^      - (\S+\.md)$", text_of(ROOT / "mkdocs.yml"), re.M)
    pages = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(each for each in listed if each.startswith("docs/")) == sorted(pages)


def test_the_command_lines_of_examples_deploy_are_understood() -> None:
    lines = [
        [word.strip('" ') for word in words.split(",")]
        for file in (ROOT / "examples" / "deploy").glob("*/*")
        for words in re.findall(r"^(?: +command:|ENTRYPOINT) \[(.+)\]$", text_of(file), re.M)
    ]
    lines += [
        words.split()
        for file in (ROOT / "examples" / "deploy").glob("*/*")
        for words in re.findall(r"^# Both machines: (.+)$", text_of(file), re.M)
    ]
    assert len(lines) == 6
    for words in lines:
        assert not read_command_line(words[1:] if words[0] == "serve" else words).doubts


def test_the_readme_has_the_defaults_of_ten_options() -> None:
    shown_rows = list(rows("README.md", "The options most used"))
    assert len(shown_rows) == 10
    for name, default, _ in shown_rows:
        flag = name.strip("`")
        assert flag == "--no-access-log" or default == FLAGS[flag].shown_default


# --- names


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    script = text_of(ROOT / ".ci" / "docs")
    [patterns] = re.findall(r"^git ls-files .* -- (.+) \|$", script, re.M)
    laid_out = re.findall(r"'([^']+)'", patterns)
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        path, _, anchor = target.partition("#")
        assert "://" not in path, f"{target}: a link out of the repository"
        there = page.parent / path if path else page
        # The site has no lists of what is in a folder, and of the repository what it copies.
        assert there.is_file(), f"{target}: no file"
        within = str(there.resolve().relative_to(ROOT))
        assert any(fnmatch(within, pattern) for pattern in laid_out), f"{target}: the site does not have it"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", text_of(there), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, (
                target
            )


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_option_named_exists(page: Path) -> None:
    known = {word for option in (*FLAGS.values(), *LOAD) for word in option.flags.split("/")}
    known |= {COMPARE, *OF_CTL}
    known |= {"--help", "--version"} | ABSENT | {word.flag for word in WORDS}
    if page.name == "migrating.md":
        known |= {word for words in THEIRS.values() for word in words.split()} | {*SWITCHES}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", text_of(page))) <= known


@pytest.mark.parametrize("heading", [*THEIRS])
def test_every_option_of_another_server_is_in_its_table(heading: str) -> None:
    section = text_of(ROOT / "docs" / "migrating.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    assert set(THEIRS[heading].split()) <= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", section))


def test_every_option_of_uvicorn_is_in_its_table() -> None:
    section = text_of(ROOT / "docs" / "migrating.md").split("\n## From uvicorn\n")[1].split("\n## ")[0]
    theirs = {option.flag for option in OPTIONS if option.name in UVICORNS and option.name != "app"}
    assert len(theirs) > 45
    assert theirs <= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", section))


@pytest.mark.parametrize("heading", [*THEIRS])
def test_what_the_page_says_is_not_done_has_no_word_here(heading: str) -> None:
    section = text_of(ROOT / "docs" / "migrating.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    words = set(re.findall(r"--[a-z][a-z0-9-]+", section.split("\nNot done here")[1]))
    refused = words & set(THEIRS[heading].split()) - {"--log-config"}
    taken = {word for option in FLAGS.values() for word in option.flags.split("/")}
    assert refused
    assert not refused & (taken | {*ALIASES, *LOGS, *MEANINGLESS, *MEANINGLESS_SWITCHES, *SWITCHES})


def test_a_bar_in_a_cell_of_the_site_has_no_backslash_before_it() -> None:
    hook = runpy.run_path(str(ROOT / ".ci" / "site_hook.py"))["on_page_content"]
    page = r"<p><code>a\|b</code></p><table><tr><td><code>on\|off</code></td></tr></table>"
    assert hook(page) == r"<p><code>a\|b</code></p><table><tr><td><code>on|off</code></td></tr></table>"


def test_what_the_readme_calls_absent_is_absent() -> None:
    assert not ABSENT & set(FLAGS)
    assert all(flag in text_of(ROOT / "README.md") for flag in ABSENT)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_function_and_test_named_exists(page: Path) -> None:
    text = text_of(page)
    code = "\n".join(text_of(path) for path in SOURCES)
    tests = "\n".join(text_of(path) for path in [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("tests/**/*.py")])
    names = {path.name for path in [*ROOT.glob("crates/*/*/*.rs"), *ROOT.glob("*/**/*.py")]}
    # These are the reader's own, and of uvicorn's archive.
    readers = {"file.py", "manage.py", *(Path(each).name for each in FILES)}
    published = text_of(ROOT / "tests" / "published" / "test_uvicorn.py")
    readers |= set(re.findall(r'"(?:\w+/)*(\w+\.py)"', published))
    for file in re.findall(r"`(?:[\w-]+/)*(\w+\.(?:rs|py))\b", text):
        assert file in names | readers, file
    for place, name in re.findall(r"`(\w+)::(\w+)`", text):
        assert re.search(rf"\b(?:fn|struct|enum) {name}\b", code), f"{place}::{name}"
        assert re.search(rf"\b{place}\b", code) or f"{place}.rs" in names, place
    for name in re.findall(r"`((?:[a-z]+_){4,}[a-z0-9]+)`", text):
        if name.startswith(("http_server_", "bridgehead_")):
            metric = re.sub(r"_(?:seconds|total)$", "", name)
            assert f'"{metric}"' in code, name
            continue
        assert re.search(rf"\b(?:def|fn) {name}\b", tests), name


def test_the_dependencies_page_names_what_is_used_and_nothing_else() -> None:
    page = text_of(ROOT / "docs" / "decisions" / "0004-dependencies.md")
    crates, packages = (set(re.findall(r"^\| `([\w-]+)` \|", part, re.M)) for part in page.split("## Python"))
    manifests = [tomllib.loads(text_of(path)) for path in ROOT.glob("crates/*/Cargo.toml")]
    declared = {
        name
        for manifest in manifests
        for kind in ("dependencies", "dev-dependencies")
        for name in manifest.get(kind, {})
        if not name.startswith("bridgehead-")
    }
    code = "\n".join(text_of(path) for path in ROOT.glob("crates/**/*.rs"))
    used = {name for name in declared if re.search(rf"\b{name.replace('-', '_')}::", code)}
    assert used <= crates <= declared
    groups = tomllib.loads(text_of(ROOT / "pyproject.toml"))["dependency-groups"]
    listed = {
        re.split(r"[<>=\[]", each)[0] for group in groups.values() for each in group if isinstance(each, str)
    }
    assert packages <= listed
