"""`uvicorn.importer`: an object by its words, `module:attribute`.

Not how `serve` finds applications (`bridgehead.load_app`), which says more when it fails.

Invariant: an import that fails inside the module is the module's own error.
"""

import importlib
from operator import attrgetter
from typing import Any


class ImportFromStringError(Exception):
    """The words name nothing."""


def import_from_string(import_str: Any) -> Any:
    """What the words name; what is no text is given back."""
    if not isinstance(import_str, str):
        return import_str
    module, _, attributes = import_str.partition(":")
    if not module or not attributes:
        raise ImportFromStringError(f'Import string "{import_str}" must be in format "<module>:<attribute>".')
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportFromStringError(f'Could not import module "{module}".') from None
    try:
        return attrgetter(attributes)(found)
    except AttributeError:
        raise ImportFromStringError(f'Attribute "{attributes}" not found in module "{module}".') from None
