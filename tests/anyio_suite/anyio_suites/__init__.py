"""anyio's own tests, taken from its source archive, with requests or tasks of ours under them.

Not a test by itself: `test_anyio.py` runs and compares. None of anyio's text is here.
"""
