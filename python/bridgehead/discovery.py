"""Where the application is when nobody said: what `[tool.fastapi]` tells, then where `fastapi run` looks.

Not the choice of an object in a module (`load_app.py`), and nothing is imported here.

Invariant: the first place that has one decides, and who needs one learns every place that was looked at.
"""

import os
import re
from pathlib import Path

from bridgehead.errors import StartError
from bridgehead.sources import Given
from bridgehead.toml_file import PYPROJECT, mentions, read_toml
from bridgehead.toml_text import as_toml, kind_of

# Of fastapi-cli, in its order.
FILES = ("main.py", "app.py", "api.py", "app/main.py", "app/app.py", "app/api.py")
_TABLE = ("tool", "fastapi")
_KEY = "entrypoint"


def find_application(folder: Path, app_dir: str) -> Given | None:
    """A target, and where it was found. Files are looked for in `app_dir`, if there is one."""
    if named := _entrypoint(folder):
        return named
    place = Path(folder, app_dir)
    for name in FILES:
        if os.path.isfile(place / name):
            return Given(value=name, source=f"found in {place}", folder=str(place))
    return None


def looked_for(folder: Path, app_dir: str) -> str:
    """The files that would have been taken, and where."""
    return f"{', '.join(FILES[:-1])} or {FILES[-1]} in {Path(folder, app_dir)}"


def need_application(folder: Path, app_dir: str) -> Given:
    """The same, for who cannot do without."""
    if found := find_application(folder, app_dir):
        return found
    hint = "write `serve module:app` or `serve path/to/file.py`; or, to write it once,"
    raise StartError(
        f"no application was named, and there is no {looked_for(folder, app_dir)}",
        f'{hint} `app = "module:app"` under [tool.bridgehead] in {PYPROJECT}',
    )


def _entrypoint(folder: Path) -> Given | None:
    """What `[tool.fastapi]` says: in the current directory only, as fastapi-cli has it."""
    if not mentions(folder / PYPROJECT, folder, re.compile(rb"fastapi")):
        return None
    document = read_toml(folder / PYPROJECT, folder)
    table = document.at(_TABLE)
    value = table.get(_KEY) if isinstance(table, dict) else None
    if value is None:
        return None
    place = document.place(_TABLE, _KEY)
    if not isinstance(value, str):
        hint = f'write `{_KEY} = "module:app"`'
        raise StartError(f"{place}: {as_toml(value)} is {kind_of(value)}; a text is due", hint)
    return Given(value=value, source=f"{place} under [tool.fastapi]", folder=str(folder))
