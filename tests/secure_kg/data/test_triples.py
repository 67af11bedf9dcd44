"""Triple files: what is read is what was written, and every fault names its place and never its content."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.triples import NamedTriples, part_file, read_triples, shown, write_triples
from secure_kg.foundation.errors import DataError

# Any Unicode a file can hold, the odd line separators included (U+0085, U+2028, form feed, ...).
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff")
names = st.text(characters, min_size=1).filter(str.strip)


def columns(rows: list[tuple[str, str, str]]) -> NamedTriples:
    heads, relations, tails = zip(*rows, strict=True) if rows else ((), (), ())
    return NamedTriples(heads, relations, tails)


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".tsv.gz", ".txt.gz"])
@given(rows=st.lists(st.tuples(names, names, names), max_size=8))
@settings(deadline=None, max_examples=40)
def test_reads_what_was_written(tmp_path_factory: pytest.TempPathFactory, suffix: str, rows) -> None:
    path = tmp_path_factory.mktemp("triples") / f"train{suffix}"
    write_triples(path, columns(rows))
    assert read_triples(path) == columns(rows)


def test_same_triples_same_bytes(tmp_path: Path) -> None:
    triples = columns([("a", "r", "b")])
    written = []
    for name, when in (("one.tsv.gz", 1), ("two.tsv.gz", 2**30)):
        write_triples(tmp_path / name, triples)
        os.utime(tmp_path / name, (when, when))
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert written[0][4:8] == b"\0\0\0\0"  # RFC 1952, MTIME: no time stamp


def test_blank_lines_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_bytes(b"\xef\xbb\xbfa\tr\tb\r\n\r\n  \nc\tr\td e\n\nf\tr\tg\r")
    assert read_triples(path) == columns([("a", "r", "b"), ("c", "r", "d e"), ("f", "r", "g")])


def test_gzip_members_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tr\tb\n") + gzip.compress(b"c\tr\td\n") + b"\0" * 8)
    assert len(read_triples(path)) == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\tr\tb\nSECRET\tr\n", 2),
        (b"SECRET\tr\tb\tc\n", 1),
        (b"SECRET", 1),
        (b"\n\nSECRET\t\tb\n", 3),
        (b"\tr\tSECRET\n", 1),
        (b"SECRET\tr\t \n", 1),
        (b"\t\t\n", 1),
        (b"a\tr\tb\n\t\n", 2),
        (b"a\tr\tb\nSECRET\tr\t\xff\n", 2),
        (b"a\tr\tb\r\nSECRET\tr\t\xc3", 2),
        (b"a\tr\tb\nSEC\rRET\tr\tc\n", 2),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_malformed_line_names_file_and_line_but_no_content(
    tmp_path: Path, content: bytes, line: int, packed: bool
) -> None:
    path = tmp_path / ("train.tsv.gz" if packed else "train.tsv")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError) as caught:
        read_triples(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert "SEC" not in message
    assert "\n" not in message
    assert caught.value.__suppress_context__  # a traceback must not show the bytes either


def test_truncated_gzip_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv.gz"
    whole = gzip.compress(b"".join(b"entity%d\trelation\ttail\n" % number for number in range(1000)))
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"train\.tsv\.gz, line \d+: .*too early"):
            read_triples(path)


@pytest.mark.parametrize("content", [b"a\tr\tb\n", gzip.compress(b"a\tr\tb\n", mtime=0)[:-8] + b"\0" * 8])
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        read_triples(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_triples(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="is a folder"):
        read_triples(tmp_path)


@pytest.mark.parametrize("name", ["", " ", "a\tb", "a\nb", "a\r", "\ufeffa", "\ud800"])
def test_names_that_no_file_can_hold_are_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError):
        write_triples(tmp_path / "train.tsv", columns([(name, "r", "b")]))
    assert not (tmp_path / "train.tsv").exists()


def test_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_triples(tmp_path / "none" / "train.tsv", columns([("a", "r", "b")]))


def test_part_file(tmp_path: Path) -> None:
    assert part_file(tmp_path, "train") is None
    (tmp_path / "train.txt.gz").touch()
    assert part_file(tmp_path, "train") == tmp_path / "train.txt.gz"
    (tmp_path / "train.tsv").touch()
    with pytest.raises(DataError, match="keep one"):
        part_file(tmp_path, "train")


def test_repr_and_paths_in_messages() -> None:
    assert repr(columns([("secret", "r", "b")])) == "NamedTriples(1 triples)"
    assert "\n" not in shown("a\nb")
    assert shown("données/train.tsv") == "données/train.tsv"
