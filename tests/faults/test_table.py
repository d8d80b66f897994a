"""The table is complete: each row that is due has cases or tests, and each test that it names is there."""

from __future__ import annotations

from table import bugs, exists, rows

# What one process can show: framing, limits, slow clients, HTTP/2, TLS, ASGI, WebSockets, stops, memory.
RANGES = [
    (1, 34),
    (36, 104),
    (108, 113),
    (116, 116),
    (119, 119),
    (122, 122),
    (125, 133),
    (134, 139),
    (141, 141),
    (142, 150),
]
DUE = {number for first, last in RANGES for number in range(first, last + 1)}
BUGS = 62


def test_each_row_that_is_due_is_there_once() -> None:
    numbers = [row.number for row in rows()]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) >= DUE


def test_each_row_has_a_case_or_a_test_or_says_what_it_waits_for() -> None:
    assert [row.number for row in rows() if not (row.cases or row.tests or row.waits_for)] == []


def test_each_test_that_a_row_or_a_bug_names_is_there() -> None:
    named = [(row.number, test) for row in rows() for test in row.tests]
    named += [(bug.number, test) for bug in bugs() for test in bug.tests]
    assert [each for each in named if not exists(each[1])] == []


def test_each_bug_of_a_peers_is_covered_by_a_row_or_a_test_or_says_what_it_waits_for() -> None:
    known = {row.number: row for row in rows()}
    assert [bug.number for bug in bugs()] == list(range(1, BUGS + 1))
    for bug in bugs():
        covered = [known[number] for number in bug.rows if number in known]
        shown = bug.tests or any(row.cases or row.tests for row in covered)
        assert shown or bug.waits_for, f"bug {bug.number}: {bug.peer}"


def test_each_case_is_served_or_refused_and_can_be_told_from_others() -> None:
    cases = [case for row in rows() for case in row.cases]
    assert len({case.name for case in cases}) == len(cases)
    assert all(case.served or case.refused for case in cases)
    assert len({case.send for case in cases}) == len(cases)
