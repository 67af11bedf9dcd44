"""Pages about protocols: one section for each disclosure, with its docstring and every field of its messages."""

from pathlib import Path

from secure_kg.report.disclosure_pages import page_title, protocol_pages
from secure_kg.report.disclosure_tables import run_protocols, score_protocols
from tests.support.toy_aggregation import registered

ROOT = Path(__file__).parents[3]


def test_every_protocol_has_a_section_with_all_its_messages() -> None:
    pages = protocol_pages(ROOT)
    for one in (*run_protocols(), *score_protocols()):
        page = pages[one.place.partition("/")[0]]
        assert page.count(f"`protocols/{one.place}`\n") == 1
        for message, fields in {**one.fields, **one.signed_fields}.items():
            assert f"| `{message.__name__}` |" in page
            assert all(f"| `{name}` |" in page for name in fields)
    assert all(page.startswith(f"# {page_title(kind)}\n") for kind, page in pages.items())


def test_words_have_no_slots_left_and_docstrings_keep_their_braces() -> None:
    pages = protocol_pages(ROOT)
    text = "".join(pages.values())
    assert not any(f"{{{slot}}}" in text for slot in ("shared", "least", "others", "trust", "lost"))
    assert "Reference:   Bonawitz et al., CCS 2017, figure 4" in pages["sums"]


def test_a_new_protocol_has_a_page(tmp_path: Path) -> None:
    for folder in (ROOT / "protocols").iterdir():
        (tmp_path / "protocols").mkdir(exist_ok=True)
        (tmp_path / "protocols" / folder.name).symlink_to(folder)
    module = tmp_path / "protocols/tests/support/toy_aggregation.py"
    module.parent.mkdir(parents=True)
    module.write_text('"""A megaphone with {braces}."""\n', encoding="utf-8")
    with registered():
        page = protocol_pages(tmp_path)["tests"]
    assert "A megaphone with {braces}." in page
    assert "all that was shouted" in page
