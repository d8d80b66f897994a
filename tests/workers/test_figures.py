"""What workers count is in memory that outlives them, and costs nothing where nobody counts."""

import os
import sys

from bridgehead._native import Sheets
from bridgehead.supervisor.figures import Figures


def test_sheets_of_workers_that_there_are_not_take_no_memory() -> None:
    figures = Figures()
    try:
        figures.sheets.at(0).begin()
        taken = os.fstat(figures.fileno()).st_blocks * 512
        assert taken < 1 << 20 < Sheets.SIZE
    finally:
        figures.close()


def test_a_worker_writes_where_its_parent_looks_by_a_descriptor() -> None:
    figures = Figures()
    try:
        Sheets(figures.fileno()).at(0).begin()
        written = os.pread(figures.fileno(), 1 << 20, 0)
        assert os.getpid().to_bytes(8, sys.byteorder) in written
        figures.sheets.give_up(0)
        assert os.getpid().to_bytes(8, sys.byteorder) not in os.pread(figures.fileno(), 1 << 20, 0)
    finally:
        figures.close()
