"""Names, addresses and fingerprints, whoever has written them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.session.site_keys import fingerprint
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.visible import visible_line
from secure_kg.provisioning import fields


@given(st.text(max_size=45))
def test_a_name_that_is_accepted_is_seen_as_it_is_and_is_no_path(name: str) -> None:
    try:
        fields.name(name)
    except UserError:
        return
    assert name == visible_line(name) == name.strip()
    assert "/" not in name
    assert ".." not in name
    assert not name.startswith("-")
    assert fields.folded(name)


@pytest.mark.parametrize(
    "name",
    [
        "\ud55c\u115f",
        "\u115f",
        "N\u043erth",
        "\u0661\u0662",
        "a\u200bb",
        "x\u202ey",
        "a  b",
        "-a",
        "a/b",
        "\u24b6",
        "A\u0261ency",
        "C\u01c0inic",
        "\u0185ank",
        "\ua4d0\ua4f3\ua4d0",
        "\u13d4\u13aa\u13f4",
        "\u2c81\u2c9f",
    ],
)
def test_a_name_with_something_hidden_or_that_mimics_letters_is_refused(name: str) -> None:
    with pytest.raises(UserError):
        fields.name(name)


@pytest.mark.parametrize(
    "name",
    [
        "Charité (Mitte)",
        "Klinikum Süd-West 2",
        "Больница 5",
        "東京大学",
        "St. Mary's",
        "Łódź",
        "İstanbul",
        "Diyarbakır",
        "Þór",
        "Bệnh viện",
        "Iași",
        "Νοσοκομείο",
        "Հիվանդանոց",
    ],
)
def test_names_of_real_places_are_accepted(name: str) -> None:
    assert fields.name(name) == name


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("ACE", "\u0410\u0421\u0415"),  # all Cyrillic
        ("Tokio", "\u03a4\u03bf\u03ba\u03b9\u03bf"),  # all Greek
        ("North Hospital", "NORTH-HOSPITAL"),
        ("Site 1", "Site l"),
        ("Lab O", "Lab 0"),
        ("Charite", "Charité"),
        ("un", "\u057d\u0578"),  # Armenian
    ],
)
def test_names_that_look_alike_are_the_same(name: str, like: str) -> None:
    assert fields.name(like) == like
    assert fields.folded(name) == fields.folded(like)


def test_names_that_differ_stay_different() -> None:
    names = ["Site 1", "Site 2", "North", "South", "Больница", "Школа", "東京", "大阪"]
    assert len({fields.folded(name) for name in names}) == len(names)


@given(st.binary(min_size=32, max_size=32), st.sampled_from([" ", ":", "-", "", "\u00a0", "\n"]), st.booleans())
def test_a_fingerprint_is_read_however_it_was_typed(identity: bytes, between: str, upper: bool) -> None:
    typed = fingerprint(identity).replace(" ", between)
    assert fields.same_fingerprint(identity, typed.upper() if upper else typed)
    other = bytes([identity[0] ^ 1]) + identity[1:]
    assert not fields.same_fingerprint(other, typed)


@pytest.mark.parametrize("typed", ["", "ab12", "0" * 31, "0" * 33, "g" * 32, "\u0660" * 32])
def test_a_part_of_a_fingerprint_is_none(typed: str) -> None:
    with pytest.raises(UserError, match="eight groups"):
        fields.digits_of(typed)


@pytest.mark.parametrize(
    ("address", "read"),
    [("a.example:8443", ("a.example", 8443)), ("A.Example", ("a.example", 443)), ("[::1]:9", ("[::1]", 9))],
)
def test_addresses_are_hosts_and_ports(address: str, read: tuple[str, int]) -> None:
    assert fields.address(address) == read


@pytest.mark.parametrize(
    "address",
    [
        "",
        ":1",
        "https://a",
        "a/b",
        "a:0",
        "a:65536",
        "a:x",
        "u@a:1",
        "a b:1",
        "a..b",
        "a:1\n",
        "-a:1",
        "a:٣",
        "[.]",
        "[1]",
        "[::::]",
        "[fe80::1%a]",
        "a-.b",
        "a.-b",
        "a" * 64,
        ("a" * 60 + ".") * 4 + "abcdefghij",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UserError):
        fields.address(address)
