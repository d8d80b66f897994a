"""A .env file: its grammar by table, and what it may not do."""

from pathlib import Path

import pytest

from bridgehead.env_file import read_env_file
from bridgehead.errors import StartError


def read(folder: Path, text: str, **environ: str) -> dict[str, str]:
    file = folder / ".env"
    file.write_bytes(text.encode())
    return {name: each.value for name, each in read_env_file(str(file), environ).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("A=1", {"A": "1"}),
        ("A = 1 \r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("export A=1", {"A": "1"}),
        ("# c\n\n  A=1\n\t# c\n", {"A": "1"}),
        ("A=", {"A": ""}),
        ("A=a b\n", {"A": "a b"}),
        ("A=x #c", {"A": "x"}),
        ("A=x#c", {"A": "x#c"}),
        ("A=#x", {"A": "#x"}),
        ("A= #x", {"A": ""}),
        ("A==b=c", {"A": "=b=c"}),
        ("A='x # y' # c", {"A": "x # y"}),
        ('A="a\nb"\nB=1', {"A": "a\nb", "B": "1"}),
        (r'A="a\n\t\"\\b"', {"A": 'a\n\t"\\b'}),
        (r"A='a\n\'\\b'", {"A": r"a\n'\b"}),
        (r"A=a\nb", {"A": r"a\nb"}),
        ("A=1\nA=2", {"A": "2"}),
        ("A\nexport B\nC=1", {"C": "1"}),
        ("\ufeffA=é", {"A": "é"}),
        ("some.name-1=x", {"some.name-1": "x"}),
    ],
)
def test_a_line_is_a_name_and_a_value(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B=${A}b", "ab"),
        ('B="${A} b"', "a b"),
        ("B=$A", "$A"),
        ("B='${A}'", "${A}"),
        ("A=file\nB=${A}", "a"),
        ("C=c\nB=${C}", "c"),
        ("B=${C}x\nC=c", "x"),
        ("B=${C:-d e}", "d e"),
        ("B=${A:-d}", "a"),
        ("B=${B}x", "x"),
    ],
)
def test_another_variable_is_inserted_but_not_between_single_quotes(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert read(tmp_path, text, A="a")["B"] == expected


def test_what_is_set_already_stays_though_it_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path, "A=1\nB=2\nC=3", A="a", B="") == {"C": "3"}


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("A=1\nB='x", 2, "B"),
        ('A="x\n\n', 1, "A"),
        ("\nA B", 2, "A"),
        ("A='x' y", 1, "A"),
        ("=1", 1, ""),
        ("A=\0", 1, "A"),
        ("A='secret\n", 1, "A"),
    ],
)
def test_a_line_that_cannot_be_understood_is_told_without_its_value(
    tmp_path: Path, text: str, line: int, name: str
) -> None:
    with pytest.raises(StartError) as refused:
        read(tmp_path, text)
    expected = f"{tmp_path}/.env, line {line}: {name!r} is not followed by a value that ends there"
    assert refused.value.message == expected
    assert refused.value.hint.startswith("write NAME=value")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="nowhere cannot be read: no such file or directory") as refused:
        read_env_file("nowhere", {})
    assert "--env-file" in refused.value.hint
    with pytest.raises(StartError, match="cannot be read: is a directory"):
        read_env_file(str(tmp_path), {})
    (tmp_path / "x").write_bytes(b"A=\xff")
    with pytest.raises(StartError, match="x is not UTF-8"):
        read_env_file(str(tmp_path / "x"), {})
