"""What a target that reads like another means: `pkg/`, `main.py.app`, `my-app:app`.

Not the grammar (`target.py` has that, and touches no file): here the files that are there decide.

Invariant: only a target that could not be served as it is written is answered, and with one that is there.
"""

import os
import re
from pathlib import Path
from types import ModuleType

from bridgehead.errors import StartError
from bridgehead.target import Target

_FILE_AND_ATTRIBUTE = re.compile(r"(?P<file>.+\.py)\.(?P<attributes>[^:/\\]+)", re.DOTALL)
_LIKELY = ("main", "app", "asgi", "api", "web", "server")  # where applications usually are
_SHOWN_NAMES = 8  # more are not read


def refuse_misread(written: str, app_dir: str) -> None:
    """`StartError` if the files say that something else was meant."""
    folder = Path(app_dir or os.curdir)
    dotted = _FILE_AND_ATTRIBUTE.fullmatch(written)
    if dotted and (folder / dotted["file"]).is_file():
        meant = f"{dotted['file']}:{dotted['attributes']}"
        raise StartError(f"{written!r} joins a file and an attribute by a dot", f"did you mean `{meant}`?")
    place, colon, rest = written.partition(":")
    if "." in place and not place.endswith(".py") and (folder / place).is_file():
        raise StartError(f"{place!r} is a file, but not one of Python", "name a .py file, or a module")
    if not place or all(part.isidentifier() for part in place.split(".")):
        return
    above = (str(each) for each in Path(place).parents if each.suffix == ".py")
    if file := next((each for each in above if (folder / each).is_file()), ""):
        attributes = os.path.relpath(place, file).replace(os.sep, ".")
        hint = f"did you mean `{file}:{attributes}{colon}{rest}`?"
        raise StartError(f"{written!r} joins a file and an attribute by a slash", hint)
    if (folder / place).is_dir():
        raise StartError(f"{place!r} is a directory", _what_is_in(folder, place, f"{colon}{rest}"))
    if "/" not in place and (folder / f"{place}.py").is_file():
        hint = f"did you mean `{place}.py{colon}{rest}`?"
        raise StartError(f"{place!r} is not the name of a module", hint)


def submodule(holder: object, name: str, rest: tuple[str, ...]) -> str:
    """The target that was meant by `package:module.rest`, or nothing."""
    for folder in getattr(holder, "__path__", ()):
        if Path(folder, f"{name}.py").is_file() or Path(folder, name, "__init__.py").is_file():
            return f"{getattr(holder, '__name__', '')}.{name}" + (f":{'.'.join(rest)}" if rest else "")
    return ""


def in_directory(module: ModuleType, rest: str = "") -> str:
    """What to name instead of a directory without an `__init__.py`: it is imported, and holds nothing."""
    folders = [*getattr(module, "__path__", ())]
    if not folders or getattr(module, "__file__", None) is not None:
        return ""
    parts = module.__name__.split(".")
    return _what_is_in(Path(folders[0]).parents[len(parts) - 1], "/".join(parts), rest)


def within_package(file: Path, wanted: Target) -> str:
    """What to do about a file that imports relatively, and could with the folder above it as its package."""
    folder = file.resolve().parent
    if not f"{folder.name}{file.stem}".isidentifier():
        return "leave out the dot: what is beside the file can be imported by its name"
    attributes = f":{'.'.join(wanted.attributes)}" if wanted.attributes else ""
    above = os.path.relpath(folder.parent)
    place = "" if above == os.curdir else f" --app-dir {above}"
    hint = f"run it as a module of its package: `serve {folder.name}.{file.stem}{attributes}{place}`"
    return f"{hint}; or add {os.path.relpath(folder / '__init__.py')}" if wanted.is_file else hint


def _what_is_in(folder: Path, place: str, rest: str) -> str:
    """The modules or files of a directory as targets, the likeliest first."""
    path = Path(os.path.normpath(place))
    stems = [each.stem for each in (folder / path).glob("*.py") if not each.stem.startswith("__")]
    stems.sort(key=lambda stem: (_LIKELY.index(stem) if stem in _LIKELY else len(_LIKELY), stem))
    parts = path.parts
    named = all(part.isidentifier() for part in parts) and (folder / path / "__init__.py").is_file()
    targets = [f"{'.'.join(parts)}.{stem}" if named else f"{path / stem}.py" for stem in stems]
    if named:
        targets.append(".".join(parts))
    if not targets:
        return "name a module or a file; there is none in it"
    shown = " or ".join(f"`{target}{rest}`" for target in targets[:_SHOWN_NAMES])
    return f"name a module or a file: {shown}"
