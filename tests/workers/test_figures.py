"""What workers count is in memory that outlives them, and costs nothing where nobody counts."""

import os
import sys

from bridgehead._native import Sheets
from bridgehead.supervisor.figures import Figures
from bridgehead.supervisor.memory import file_without_a_name


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
        # In front of all sheets is how the last one stood that is gone.
        assert os.getpid().to_bytes(8, sys.byteorder) not in os.pread(figures.fileno(), 1 << 20, 4096)
    finally:
        figures.close()


def test_figures_that_another_program_laid_out_are_left_to_its_workers() -> None:
    other = file_without_a_name("of-another-program")
    os.ftruncate(other, Sheets.SIZE // 2)
    with open(os.dup(other), "rb") as theirs:
        figures = Figures(other)
        try:
            assert figures.begin_anew
            figures.sheets.at(0).begin()
            assert os.fstat(theirs.fileno()).st_size == Sheets.SIZE // 2
            assert os.fstat(figures.fileno()).st_size == Sheets.SIZE
        finally:
            figures.close()


def test_figures_that_the_same_program_left_go_on() -> None:
    before = Figures()
    before.sheets.at(0).begin()
    figures = Figures(before.fileno())
    try:
        assert not figures.begin_anew
        assert figures.fileno() == before.fileno()
        assert os.getpid().to_bytes(8, sys.byteorder) in os.pread(figures.fileno(), 1 << 20, 0)
    finally:
        figures.close()
