"""Documents and code say the same of what protocols reveal: tables are rendered from disclosures (`make tables`)."""

from pathlib import Path

import pytest

from protocols.registry import AGGREGATIONS, ALIGNMENTS
from secure_kg.foundation.errors import UserError
from secure_kg.report.disclosure_tables import DOCUMENTS, TABLES, all_rendered, rendered
from tests.support.toy_aggregation import registered

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_has_its_table_as_the_code_has_it(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert all_rendered(text, DOCUMENTS[name]) == text, "make tables"


def test_every_table_has_a_document_and_every_choice_a_row() -> None:
    assert sorted(name for names in DOCUMENTS.values() for name in names) == sorted(TABLES)
    by_option = TABLES["who learns what"]()
    for option, names in (("--aggregation", AGGREGATIONS), ("--alignment", ALIGNMENTS)):
        assert all(f"| `{option} {name}`" in by_option for name in names)
    assert "{" not in "".join(table() for table in TABLES.values())


def test_a_new_aggregation_is_in_all_tables() -> None:
    with registered():
        tables = {name: table() for name, table in TABLES.items()}
        row = "| `--aggregation megaphone` | values of shared rows | all that was shouted |"
        assert row in tables["who learns what"]
        assert "| `tests/support/toy_aggregation` |" in tables["what protocols reveal"]
        assert "| sums by megaphone | the deaf |" in tables["what protocols assume"]
        document = (ROOT / "docs/who-learns-what.md").read_text(encoding="utf-8")
        assert rendered(document, "who learns what").count("shouted") > 2
    assert "shouted" not in TABLES["who learns what"]()


@pytest.mark.parametrize("text", ["nothing marked", "<!-- rendered: who learns what -->\n<!-- end of another -->"])
def test_a_document_without_the_marks_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="who learns what"):
        rendered(text, "who learns what")
