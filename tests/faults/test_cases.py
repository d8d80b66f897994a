"""Each case of the table is judged as the table has it, and a canary beside loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import PATHS, Corpus, drip, serving, some_cuts, whole
from table import Row, rows

from bridgehead.testing import Canary, Folder

ROWS = [row for row in rows() if row.cases]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder: Path = tmp_path_factory.mktemp("ledger")
    ledger = Folder(folder)
    with serving(ledger) as server, Canary(server.url, PATHS, ledger=ledger) as canary:
        yield Corpus(server)
        canary.wait_for(3)
        canary.check().assert_kept()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_a_case_comes_to_what_the_table_says(corpus: Corpus, row: Row) -> None:
    cases = row.cases
    wrong = [each for case in cases for pieces in whole(case) for each in corpus.complaints(case, pieces)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_a_case_is_judged_the_same_however_it_is_cut(corpus: Corpus, row: Row) -> None:
    """At some places, and one case of each row byte by byte; `make faults` cuts all of them everywhere."""
    cases = row.cases
    wrong = [each for case in cases for pieces in some_cuts(case) for each in corpus.complaints(case, pieces)]
    small = [case for case in cases if len(case.send) < 400][:1]
    wrong += [each for case in small for each in corpus.complaints(case, drip(case))]
    assert not wrong, "\n".join(wrong)
