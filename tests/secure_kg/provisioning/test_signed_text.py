"""Texts that end in their signatures: what is read is what was signed, and nothing else."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.session.identities import new_identity
from protocols.session.site_keys import fingerprint, public_of, sign_document
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.roster import parse_roster
from secure_kg.provisioning.signed_text import signed_text, split_signed
from tests.support.provisioned import Federation

A, B = new_identity().private_pem, new_identity().private_pem
BODY = 'a = "1"\n'


@given(st.text(max_size=200))
def test_any_body_comes_back_to_the_byte_or_is_not_signed(body: str) -> None:
    body = body.replace("\r", "") + "\n"
    try:
        body.encode()
        text = signed_text(body, "kind", [A])
    except (ValueError, UnicodeEncodeError):
        return
    found = split_signed(text, "kind")
    assert (found.body, found.signers) == (body, (public_of(A),))
    assert split_signed(text.replace("\n", "\r\n"), "kind") == found


@given(st.integers(0, 10_000), st.integers(0, 0x10FFFF).map(chr))
def test_no_character_can_be_changed_or_put_in(at: int, letter: str) -> None:
    text = signed_text(BODY, "kind", [A])
    at %= len(text)
    for changed in (text[:at] + letter + text[at + 1 :], text[:at] + letter + text[at:]):
        if changed.replace("\r\n", "\n").rstrip("\n") == text.rstrip("\n"):
            continue
        try:
            changed.encode()
        except UnicodeEncodeError:
            continue  # no file can hold it
        with pytest.raises(UserError):
            split_signed(changed, "kind")


def test_a_file_of_another_kind_is_called_by_its_name() -> None:
    request = signed_text('kind = "request"\n', "request", [A])
    with pytest.raises(UserError, match="this is a file of kind request, not federation"):
        split_signed(request, "federation")


def test_signatures_of_another_kind_or_appended_ones_are_refused() -> None:
    text = signed_text(BODY, "kind", [A])
    own = text.partition("[signature]\n")[2]
    for wrong in (
        text + own,
        text + "\n" + own,
        text.replace("[signature]", "[ signature]"),
        text + "b = 1\n",
        BODY + "\n[signature]\n",
        signed_text(BODY, "kind", [A, A]),
        text + signed_text(BODY, "kind", [B]).partition("[signature]\n")[2] + own,
    ):
        with pytest.raises(UserError):
            split_signed(wrong, "kind")
    with pytest.raises(UserError, match="does not fit"):
        split_signed(text, "another")


def test_a_second_mark_in_a_body_cannot_be_signed_and_a_first_one_ends_it() -> None:
    with pytest.raises(ValueError, match="another"):
        signed_text(f"{BODY}\n[signature]\nx\n", "kind", [A])
    inner = f"{BODY}\n[signature]\n"
    line = f'{public_of(A).hex()} = "{sign_document(A, "kind", inner.encode()).hex()}"\n'
    with pytest.raises(UserError):
        split_signed(f"{inner}\n[signature]\n{line}", "kind")


@pytest.mark.parametrize("body", ["a = " + "[" * 5000 + "\n", "a" + ".a" * 900 + " = 1\n", "a = 1\na = 2\n", "\x00\n"])
def test_a_body_that_is_hard_to_parse_is_refused_in_one_line(body: str) -> None:
    with pytest.raises(UserError):
        split_signed(signed_text(body, "kind", [A]), "kind").values()


def test_a_body_of_nested_lists_over_many_lines_is_refused() -> None:
    with pytest.raises(UserError):
        split_signed(signed_text("a = " + "[\n" * 20_000, "kind", [A]), "kind").values()


def test_a_request_is_no_federation_and_the_other_way_round(federation: Federation) -> None:
    site = federation.sites[0]
    request = request_text(site.name, site.identity_pem, datetime.now(UTC))
    with pytest.raises(UserError):
        parse_roster(request, fingerprint(site.identity))
    with pytest.raises(UserError):
        parse_request(federation.path.read_text())
