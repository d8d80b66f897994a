"""The words of statuses, for the tables that uvicorn's protocols have.

Invariant: a status without words has empty ones.
"""

from http import HTTPStatus

PHRASES: dict[int, str] = dict.fromkeys(range(100, 600), "") | {
    each.value: each.phrase for each in HTTPStatus
}
