"""CPython's own tests of asyncio, taken from the running Python, with our tasks where its own were.

Not a test by itself: `test_cpython.py` runs and compares. None of CPython's text is here.
"""
