"""Words of peers on a page: neither markup nor control characters get through."""

from secure_kg.report.html import markup, tag


def test_control_characters_are_shown_and_do_nothing() -> None:
    said = "\x1b[2J\x9b31m\u202eevil\x00\x7f"
    page = markup(said) + tag("p", said, title=said)
    assert not {"\x1b", "\x9b", "\u202e", "\x00", "\x7f"} & {*page}
    assert "\\x1b[2J" in page
    assert markup("two\nlines\tand a tab: é 漢") == "two\nlines\tand a tab: é 漢"
