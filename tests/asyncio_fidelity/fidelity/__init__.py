"""The same coroutine in a request handler and under `asyncio.run`: what it saw there has to be equal.

Not a test by itself: `test_fidelity.py` runs and compares, `cases` holds what is run.
"""
