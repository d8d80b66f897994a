"""A service of BentoML's: an answer, a stream, a file."""

from collections.abc import Generator
from pathlib import Path

import bentoml


@bentoml.service(traffic={"timeout": 60}, workers=1)
class Shop:
    @bentoml.api
    def greet(self, name: str = "nobody") -> str:
        return f"Hello {name}"

    @bentoml.api
    def count(self, steps: int = 3) -> Generator[str, None, None]:
        for step in range(steps):
            yield f"{step}\n"

    @bentoml.api
    def size(self, file: Path) -> int:
        return file.stat().st_size

    @bentoml.api(batchable=True)
    def double(self, numbers: list[int]) -> list[int]:
        return [2 * number for number in numbers]
