"""`bridgehead load`: words in, a report out.

Not the run (`running.py`) and not how a report looks.

Invariant: an interrupt ends the run early, and its report is still written.
"""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridgehead import open_files
from bridgehead.argument_parser import Parser
from bridgehead.errors import StartError
from bridgehead.load import options, outputs, words
from bridgehead.load.options import LoadOptions
from bridgehead.load.outputs import STDOUT, Outputs, write
from bridgehead.load.report import Progress, Report, read_report
from bridgehead.options import Option

_PROG = "bridgehead load"
_DESCRIPTION = "Put load on an HTTP server, and report what came back."
_EPILOG = """\
An application whose module is called `load` is served by `serve load`, `bridgehead load:app`
or `bridgehead ./load.py`.

examples:
  bridgehead load http://127.0.0.1:8000/
  bridgehead load http://127.0.0.1:8000/items/{random:1-100} --rate 500 --duration 30s
  bridgehead load unix:/run/shop.sock --connections 200 --html report.html
  bridgehead load http://127.0.0.1:8000/ --scenarios shop.toml --json -
  bridgehead load --compare before.json after.json
"""
COMPARE = "--compare"
OPTIONS = (*options.OPTIONS, *outputs.OPTIONS)
# How often progress is shown, and an interrupt seen.
_SLICE = 0.2


def main(argv: Sequence[str]) -> int:
    """Run the command; what cannot begin is a `StartError`."""
    parser = _parser()
    parsed, unknown = parser.parse_known_args(argv)
    parser.refuse_unknown(unknown, unexpected="one URL is enough; options begin with --")
    written = vars(parsed)
    if (files := written.pop(COMPARE, None)) is not None:
        return _compare(files, written)
    _tell_how_to_serve(written)
    chosen = Outputs(**_read(outputs.OPTIONS, written))
    chosen.check()
    _show(_run(LoadOptions(**_read(options.OPTIONS, written)), chosen), chosen)
    return 0


def _parser() -> Parser:
    parser = Parser(prog=_PROG, usage=f"{_PROG} URL [options]", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_options(OPTIONS)
    others = parser.add_argument_group("Others")
    others.add_argument(
        COMPARE,
        dest=COMPARE,
        nargs=2,
        metavar=("A.json", "B.json"),
        default=None,
        help="instead of a run: what differs between two reports, with confidence intervals",
    )
    others.add_argument("-h", "--help", action="help", help="show this and exit")
    return parser


def _read(known: Sequence[Option], written: Mapping[str, Any]) -> dict[str, Any]:
    """The values of some options; errors name the flag."""
    values = {}
    for option in known:
        if option.name in written:
            try:
                values[option.name] = option.read(written[option.name])
            except StartError as problem:
                raise problem.within(option.flags) from None
    return values


def _tell_how_to_serve(written: Mapping[str, Any]) -> None:
    """Somebody who has a module called `load` may have meant to serve it."""
    if "url" in written or "uds" in written:
        return
    here = any(Path(each).exists() for each in ("load.py", "load/__init__.py"))
    hint = "to serve the module `load`: `serve load`" if here else "write http://host:port/path"
    raise StartError(f"{_PROG} needs a URL", hint)


def _run(chosen: LoadOptions, shown: Outputs) -> Report:
    from bridgehead.load.plan import plan_of
    from bridgehead.load.running import Running

    plan = plan_of(chosen)
    # Each connection is a file, and a shell's usual limit is 1,024.
    open_files.raise_limit()
    live = sys.stderr.isatty() if shown.progress is None else shown.progress
    # A supervisor that ends us wants the report as much as who presses Ctrl-C; a shell has its jobs in the
    # background ignore the latter.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with Running(plan) as run:
        try:
            while not run.wait(_SLICE):
                if live:
                    _tell(_line(run.progress(), chosen))
        except KeyboardInterrupt:
            run.stop()
        if live:
            _tell("")
        return run.report()


def _tell(line: str) -> None:
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()


def _line(progress: Progress, chosen: LoadOptions) -> str:
    if progress.elapsed is None:
        return "warming up"
    whole = f" of {words.time(chosen.measured)}" if chosen.measured is not None else ""
    most = f" of {words.count(chosen.requests)}" if chosen.requests is not None else ""
    parts = [f"{progress.elapsed:.1f} s{whole}", f"{words.count(progress.requests)}{most} requests"]
    if (row := progress.latest) is not None:
        parts += [
            f"{words.a_second(row.rps)} rps",
            f"p50 {words.time(row.p50)}",
            f"p99 {words.time(row.p99)}",
        ]
    parts.append(f"{words.count(progress.errors)} errors")
    return "  ".join(parts)


def _show(report: Report, chosen: Outputs) -> None:
    from bridgehead.load.table import as_csv
    from bridgehead.load.text import as_text

    # What was asked for on stdout stands there alone.
    stream = sys.stderr if STDOUT in chosen.files else sys.stdout
    stream.write(as_text(report, plain="utf" not in (stream.encoding or "").lower()))
    if chosen.json is not None:
        write(chosen.json, json.dumps(report.to_json(), indent=1) + "\n")
    if chosen.csv is not None:
        write(chosen.csv, as_csv(report))
    if chosen.html is not None:
        from bridgehead.load.page import as_page

        write(chosen.html, as_page(report))


def _compare(files: Sequence[str], written: Mapping[str, Any]) -> int:
    if written:
        name = next(iter(written)).replace("_", "-")
        raise StartError(
            f"{COMPARE} reads two reports and runs nothing, so {name} has no use", "leave it out"
        )
    from bridgehead.load.compare import as_text

    first, second = (read_report(Path(each)) for each in files)
    sys.stdout.write(as_text(first, second, names=(files[0], files[1])))
    return 0
