"""`python -m bridgehead_run TARGET …` is `bridgehead.run(TARGET, port=0)`; further words are not read."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import bridgehead

if __name__ == "__main__":
    options: dict[str, Any] = json.loads(os.environ["LOOP"])
    bridgehead.run(sys.argv[1], port=0, **options)
