"""A job of two steps, and one that fails."""

from dagster import Definitions, in_process_executor, job, op


@op
def one() -> int:
    return 1


@op
def more(number: int) -> int:
    return number + 1


@op
def fails() -> None:
    raise ValueError("on purpose")


@job
def counting():
    more(one())


@job
def broken():
    fails()


defs = Definitions(jobs=[counting, broken], executor=in_process_executor)
