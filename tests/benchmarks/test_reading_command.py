"""The benchmark of reading on a small graph. Times are never compared."""

import json
from pathlib import Path

import pytest

from benchmarks import reading


def test_every_format_gives_the_drawn_graph(tmp_path: Path) -> None:
    sizes = {reading.measured(reading._written(tmp_path, suffix, 400))["triples"] for suffix in reading.FORMATS}
    different = len(set(reading.drawn(400)))
    assert max(sizes) == 400
    assert min(sizes) >= different - 40  # JSON-LD has sets of values: repetitions are gone


@pytest.mark.long
def test_figures_are_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--triples", "200", "--formats", ".ttl"]
    assert reading.main([*arguments, "--json", str(tmp_path / "reading.json")]) == 0
    (line,) = json.loads((tmp_path / "reading.json").read_text())["formats"]
    assert (line["format"], line["triples"]) == (".ttl", 200)
    assert line["triples_per_second"] > 0
    assert line["parser_alone_per_second"] > 0
    assert reading.main(["--triples", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
