"""Imports the module or the file that a target names, and explains why it could not.

Not the choice of the application in it: that is `load_app.py`.

Invariant: "it does not exist" and "it failed while it was imported" are never confused.
"""

import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from bridgehead.errors import (
    StartError,
    application_traceback,
    did_you_mean,
    has_application_frames,
    nearest,
)
from bridgehead.meant import within_package
from bridgehead.target import Target

_SHOWN_NAMES = 8  # more are not read
# In the words of asyncio.run, of run_until_complete in asyncio and uvloop, and of anyio.run.
_IN_THE_LOOP = re.compile(r"running event loop|loop is (already )?running|Already running asyncio")


def load_module(wanted: Target, *, app_dir: str) -> ModuleType:
    """Import it, with `app_dir` first on the path."""
    folder = os.path.abspath(app_dir or os.curdir)
    if not os.path.isdir(folder):
        raise StartError(
            f"--app-dir: there is no directory {app_dir!r}", "name the directory the application is in"
        )
    _put_first(folder)
    if wanted.is_file:
        return _load_file(wanted, folder)
    try:
        return _imported(wanted, lambda: importlib.import_module(wanted.place))
    except ModuleNotFoundError as problem:
        raise _missing_module(wanted, problem.name or wanted.place, folder) from None


def _load_file(wanted: Target, folder: str) -> ModuleType:
    """Import a file under the name its packages give it."""
    file = next((path for path in (Path(folder, wanted.place), Path(wanted.place)) if path.is_file()), None)
    if file is None:
        path = Path(folder, wanted.place)
        if path.is_dir():
            raise StartError(f"{wanted.place!r} is a directory", "name a file in it, or rename it")
        if path.is_symlink():
            message = f"{wanted.place!r} links to {os.readlink(path)!r}, where there is no file"
            raise StartError(message, "mend the link, or name the file itself")
        near = did_you_mean(path.name, (each.name for each in path.parent.glob("*.py") if each.is_file()))
        otherwise = (
            f"there is no such directory: {path.parent}" if not path.parent.is_dir() else "look at the path"
        )
        raise StartError(f"there is no file {wanted.place!r}", near or otherwise)
    file = file.resolve()
    names = [] if file.stem == "__init__" else [file.stem]
    root = file.parent
    while (root / "__init__.py").is_file():  # relative imports need the whole package
        names.insert(0, root.name)
        root = root.parent
    _put_first(str(root))
    try:
        return _imported(wanted, lambda: _import_file(file, names))
    except ModuleNotFoundError as problem:
        raise StartError(
            f"{wanted.place} cannot be imported: {problem}", "import it as a module instead"
        ) from None


def _import_file(file: Path, names: list[str]) -> ModuleType:
    if len(names) > 1 or file.stem == "__init__":
        return importlib.import_module(".".join(names))
    name = names[0].replace(".", "_")
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(file):
        return loaded
    if loaded is not None:  # `json.py` is a fair name for a file, yet it must not replace the module
        name += "_app"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no loader for {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _imported(wanted: Target, bring: Callable[[], ModuleType]) -> ModuleType:
    """What `bring` imports; a failure of the application's own code becomes a `StartError`."""
    try:
        return bring()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: a module that exits must say so
        if isinstance(problem, ModuleNotFoundError) and not has_application_frames(problem):
            raise
        raise _failed_import(wanted, problem) from None


def _failed_import(wanted: Target, problem: BaseException) -> StartError:
    detail = application_traceback(problem)
    match problem:
        case SyntaxError() if problem.filename:
            place = f"{os.path.relpath(problem.filename)}, line {problem.lineno}"
            return StartError(f"{wanted.place} has a syntax error in {place}", "correct it", detail=detail)
        case ModuleNotFoundError():
            folders = _folders_of(problem.name or "")
            if folders:
                message = f"{wanted.place} imports {problem.name!r}, which is not in {folders[0]}"
                names = (each.name for each in pkgutil.iter_modules(folders))
                missing = (problem.name or "").rpartition(".")[2]
                hint = did_you_mean(missing, names, otherwise="make it, or correct the import above")
                return StartError(message, hint, detail=detail)
            message = f"{wanted.place} imports {problem.name!r}, which is not installed"
            hint = f"install it into this Python ({sys.executable}), or correct the import above"
            return StartError(message, hint, detail=detail)
        case SystemExit():
            message = f"{wanted.place} ended the process while it was imported (exit code {problem.code})"
            hint = "put what must not run on import under `if __name__ == '__main__':`"
            return StartError(message, hint, detail=detail)
        case ImportError() if "relative import" in str(problem):
            file = Path(traceback.extract_tb(problem.__traceback__)[-1].filename)
            message = f"{wanted.place} imports relatively, and is in no package"
            return StartError(message, within_package(file, wanted), detail=detail)
    message = f"{wanted.place} raised {type(problem).__name__} while it was imported"
    hint = loop_hint(problem) or "the traceback above is the application's"
    return StartError(message, hint, detail=detail)


def _folders_of(module: str) -> list[str]:
    """Where the package is that a module would be in, if there is one: nothing is imported for that."""
    folders: list[str] | None = None
    parts = module.split(".")
    for end in range(1, len(parts)):
        spec = PathFinder.find_spec(".".join(parts[:end]), folders)
        if spec is None or spec.submodule_search_locations is None:
            return []
        folders = list(spec.submodule_search_locations)
    return folders or []


def loop_hint(problem: BaseException) -> str:
    """What to do about `asyncio.run()` while the application is loaded; nothing for another error."""
    if not isinstance(problem, RuntimeError) or not _IN_THE_LOOP.search(str(problem)):
        return ""
    trace = problem.__traceback__
    while trace is not None:  # the coroutine that was to run: left alone, it warns that nobody awaited it
        for each in trace.tb_frame.f_locals.values():
            if inspect.iscoroutine(each) and inspect.getcoroutinestate(each) == inspect.CORO_CREATED:
                each.close()
        trace = trace.tb_next
    return "the server's loop runs already: await it in the application's lifespan startup"


def _missing_module(wanted: Target, missing: str, folder: str) -> StartError:
    """The target itself is not there, or a package above it."""
    parent, _, last = missing.rpartition(".")
    holder = sys.modules.get(parent)
    if parent and holder is not None and not hasattr(holder, "__path__"):
        attribute = f"{parent}:{last}"
        return StartError(f"{parent!r} is a module, not a package", f"did you mean `{attribute}`?")
    places = list(holder.__path__) if holder is not None else [folder]
    names = sorted(each.name for each in pkgutil.iter_modules(places) if each.name.isidentifier())
    message = f"there is no module {missing!r} in {places[0]}" + ("" if parent else " or on sys.path")
    near = nearest(last, names)
    if near:
        name = f"{parent}.{near[0]}" if parent else near[0]
        rest = wanted.place.removeprefix(missing)
        attributes = ":" + ".".join(wanted.attributes) if wanted.attributes else ""
        return StartError(message, f"did you mean `{name}{rest}{attributes}`?")
    has = f"it has {', '.join(names[:_SHOWN_NAMES])}" if names else "start in the application's directory"
    return StartError(message, f"{has}; --app-dir names another directory")


def _put_first(folder: str) -> None:
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)
