"""Pictures by themselves: well-formed, scoped styles, nothing injected, and charts with several series."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from secure_kg.foundation.errors import UserError
from secure_kg.report.charts import line_chart, series_chart
from secure_kg.report.in_notebooks import plain_table
from secure_kg.report.picture import Panel, grey_panel, picture

SPACE = "{http://www.w3.org/2000/svg}"
SERIES = [("one", [(1.0, 0.2), (2.0, 0.4)]), ("two", [(1.0, 0.1), (2.0, 0.3)])]


def test_a_picture_is_well_formed_and_says_everything() -> None:
    panel = Panel("a & b <c>", series_chart(SERIES, "x", "y"), names=("one", "two"))
    drawn = picture("Title <script>", [panel, panel, panel], "first line\nsecond line")
    root = ElementTree.fromstring(drawn.svg)
    texts = [found.text for found in root.iter(f"{SPACE}text")]
    assert {"Title <script>", "a & b <c>", "one", "two", "first line", "second line"} <= set(texts)
    assert len(list(root.iter(f"{SPACE}polyline"))) == 6
    assert float(root.attrib["width"]) == drawn.width == 2 * panel.width + 60  # two in a row
    assert float(root.attrib["height"]) == drawn.height > 2 * panel.height


def test_styles_hold_inside_of_pictures_only() -> None:
    root = ElementTree.fromstring(picture("t", [Panel("p", line_chart([(1, 1)], "x", "y"))]).svg)
    style = root.find(f"{SPACE}style")
    assert style is not None
    selectors = [one.strip() for found in re.findall(r"([^{}]+)\{", style.text or "") for one in found.split(",")]
    assert len(selectors) > 20
    assert all(one.startswith(".secure-kg") for one in selectors)
    assert root.attrib["class"] == "secure-kg"


def test_points_of_grey_become_an_image_inside() -> None:
    drawn = picture("grey", [grey_panel("caption", np.arange(16, dtype=np.uint8).reshape(4, 4))])
    (image,) = ElementTree.fromstring(drawn.svg).iter(f"{SPACE}image")
    assert image.attrib["href"].startswith("data:image/png;base64,")


def test_given_ticks_are_the_range_of_a_chart() -> None:
    chart = series_chart(SERIES, "x", "y", [(1.0, "first"), (2.0, "last")])
    assert ">first<" in chart
    assert re.findall(r"points='([\d.]+),", chart) == ["64.0", "64.0"]  # at the left edge, and not behind a zero


def test_only_svg_files_are_written(tmp_path: Path) -> None:
    drawn = picture("t", [grey_panel("c", np.zeros((2, 2), dtype=np.uint8))])
    assert drawn.save(tmp_path / "a" / "b.svg").read_text("utf-8") == drawn._repr_svg_()
    with pytest.raises(UserError, match="must end in"):
        drawn.save(tmp_path / "b.pdf")
    assert "Picture(t;" in repr(drawn)


def test_a_table_in_a_notebook_escapes_words_and_aligns_numbers() -> None:
    made = plain_table(("name", "number"), [["<b>", 1234], ["x", 5]])
    assert "&lt;b&gt;" in made
    assert "text-align:right'>1,234<" in made
    assert "text-align:left'>x<" in made
