"""`python -m uvicorn`, with Bridgehead in its place.

Invariant: it adds nothing to `main.py`.
"""

from bridgehead.compat.uvicorn.main import main

if __name__ == "__main__":
    main()
