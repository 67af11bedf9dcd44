"""Identities as texts: they come back as they were written, anything else is refused, and private keys stay private."""

import copy
import pickle
import tomllib

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import PartyId, new_session
from protocols.session.channels import channel_statement
from protocols.session.identities import (
    LARGEST_NUMBER,
    LONGEST_NAME,
    Identity,
    IdentityError,
    PublicIdentity,
    credentials,
    directory_text,
    new_identity,
    parse_directory,
    parse_public,
    public_text,
)

A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
numbers = st.integers(1, LARGEST_NUMBER).map(PartyId)
publics = st.binary(min_size=32, max_size=32).map(bytes.hex)
names = st.none() | st.text(min_size=1, max_size=LONGEST_NAME).filter(lambda name: name.isprintable() and name.strip())
# "PRIVATE KEY" in a name would be taken for one.
clients = st.builds(PublicIdentity, numbers, publics, names).filter(lambda one: "PRIVATE KEY" not in (one.name or ""))


def client(number: int, public: str, name: str | None = None) -> PublicIdentity:
    return PublicIdentity(PartyId(number), public, name)


def federation(count: int) -> tuple[list[Identity], str]:
    """Pairs of clients 1, 2, ... and their directory."""
    pairs = [new_identity() for _ in range(count)]
    return pairs, directory_text(client(number, pair.public) for number, pair in enumerate(pairs, start=1))


# --- pairs ----------------------------------------------------------------------------------------------------------


def test_a_new_identity_is_a_fresh_pair_that_hides_its_private_half() -> None:
    pair, other = new_identity(), new_identity()
    private = load_pem_private_key(pair.private_pem, password=None)
    assert private.public_key().public_bytes_raw().hex() == pair.public  # type: ignore[union-attr]
    assert pair.public != other.public
    assert len(pair.fingerprint.replace(" ", "")) == 32
    secret = private.private_bytes_raw()  # type: ignore[union-attr]
    for text in (repr(pair), str(pair), repr([pair])):
        assert pair.public in text
        assert not any(hidden in text for hidden in ("PRIVATE", pair.private_pem.decode().split("\n")[1], secret.hex()))


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_pair_is_not_serialised(leak: object) -> None:
    with pytest.raises(TypeError, match="a private key is not serialised"):
        leak(new_identity())  # type: ignore[operator]


# --- texts ----------------------------------------------------------------------------------------------------------


@given(clients)
def test_a_public_file_comes_back(one: PublicIdentity) -> None:
    assert parse_public(public_text(one)) == one


@given(st.lists(clients, min_size=2, max_size=6, unique_by=(lambda one: one.number, lambda one: one.public)))
def test_a_directory_comes_back_in_order(some: list[PublicIdentity]) -> None:
    text = directory_text(some)
    assert list(parse_directory(text)) == sorted(some, key=lambda one: one.number)
    assert directory_text(reversed(some)) == text


def test_the_formats() -> None:
    assert public_text(client(3, A)) == f'version = 1\nnumber = 3\npublic = "{A}"\n'
    assert tomllib.loads(directory_text([client(3, A, 'St. "Mary"'), client(1, B)])) == {
        "version": 1,
        "client": [{"number": 1, "public": B}, {"number": 3, "public": A, "name": 'St. "Mary"'}],
    }


def test_the_fingerprint_is_that_of_the_public_key() -> None:
    pair = new_identity()
    assert client(1, pair.public).fingerprint == pair.fingerprint != client(1, A).fingerprint


def entry(number: object = 1, public: object = f'"{A}"', more: str = "") -> str:
    return f"number = {number}\npublic = {public}\n{more}\n"


BAD_ENTRIES = [
    (entry(number=0), "'number' must be a whole number from 1 to 2147483647"),
    (entry(number=-1), "'number' must be"),
    (entry(number=2**31), "'number' must be"),
    (entry(number="true"), "'number' must be"),
    (entry(number="1.0"), "'number' must be"),
    (entry(number='"1"'), "'number' must be"),
    (entry(public=f'"{A[1:]}"'), "'public' must be 64 hex digits in lower case"),
    (entry(public=f'"{A}0"'), "'public' must be"),
    (entry(public=f'"{A.upper()}"'), "'public' must be"),
    (entry(public=f'"{A[:-1]}g"'), "'public' must be"),
    (entry(public=f'"{A}\\n"'), "'public' must be"),
    (entry(public=f'"{A[:-2]} a"'), "'public' must be"),
    (entry(public=7), "'public' must be"),
    (entry(more="name = 7"), "'name' must be printable text"),
    (entry(more='name = ""'), "'name' must be printable text"),
    (entry(more='name = " "'), "'name' must be printable text"),
    (entry(more='name = "\\u001b[2J"'), "'name' must be printable text"),
    (entry(more=f'name = "{"x" * 41}"'), "'name' must not be longer than 40 characters"),
    (entry(more="private = 1"), "unknown key 'private'"),
    (entry(more='"\\u001b[2J\\n" = 1'), r"unknown key '\x1b[2J\n'"),
    (f'public = "{A}"\n', "'number' is missing"),
    ("number = 1\n", "'public' is missing"),
]


@pytest.mark.parametrize(("text", "message"), BAD_ENTRIES)
def test_a_malformed_entry_is_refused_everywhere(text: str, message: str) -> None:
    with pytest.raises(IdentityError) as alone:
        parse_public("version = 1\n" + text)
    other = f'[[client]]\nnumber = 2\npublic = "{B}"\n'
    with pytest.raises(IdentityError) as listed:
        parse_directory(f"version = 1\n{other}[[client]]\n{text}")
    assert message in str(alone.value)
    assert str(listed.value) == f"[[client]] table 2: {alone.value}"
    assert "\n" not in str(alone.value)
    assert isinstance(alone.value, ProtocolError)


@pytest.mark.parametrize("parse", [parse_public, parse_directory])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'version' must be 1"),
        ("version = 2", "'version' must be 1"),
        ("version = true", "'version' must be 1"),
        ("version = 1.0", "'version' must be 1"),
        ("version = 1\nversion = 1", "not a TOML file"),
        ("version: 1", "not a TOML file"),
        ("version = " + "1" * 5000, "not a TOML file"),
        ("version = 1\nx = " + "[" * 100_000, "not a TOML file"),
        ("version = 1\ncolour = 1", "unknown key 'colour'"),
        ("version = 1", "is missing"),
    ],
)
def test_other_texts_are_refused(parse: object, text: str, message: str) -> None:
    with pytest.raises(IdentityError, match=message):
        parse(text)  # type: ignore[operator]


@pytest.mark.parametrize("parse", [parse_public, parse_directory])
def test_a_private_key_is_not_taken_for_a_public_text_nor_quoted(parse: object) -> None:
    pem = new_identity().private_pem.decode()
    with pytest.raises(IdentityError, match="a private key, which its owner must not pass on") as refusal:
        parse(pem)  # type: ignore[operator]
    assert pem.split("\n")[1] not in str(refusal.value)


def test_one_kind_of_text_is_not_taken_for_the_other() -> None:
    with pytest.raises(IdentityError, match="a key directory, not the public file"):
        parse_public(directory_text([client(1, A), client(2, B)]))
    with pytest.raises(IdentityError, match="unknown key 'number'"):
        parse_directory(public_text(client(1, A)))


@pytest.mark.parametrize("tables", ["client = 1", "client = [1, 2]", "[client]\nnumber = 1"])
def test_clients_are_a_list_of_tables(tables: str) -> None:
    with pytest.raises(IdentityError, match="'client' must be a list of tables"):
        parse_directory(f"version = 1\n{tables}")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(1, A), (2, B), (1, C)], "client 1 stands there twice"),
        ([(1, A), (1, A)], "client 1 stands there twice"),
        ([(5, A), (2, B), (3, A)], "clients 3 and 5 have the same public key"),
        ([(1, A)], "a key directory needs at least two clients"),
        ([], "a key directory needs at least two clients"),
    ],
)
def test_a_directory_names_two_or_more_clients_and_keys_once_each(entries: list[tuple[int, str]], message: str) -> None:
    with pytest.raises(IdentityError, match=message):
        directory_text(client(*one) for one in entries)
    written = "".join(f'[[client]]\nnumber = {number}\npublic = "{public}"\n' for number, public in entries)
    with pytest.raises(IdentityError, match=message):
        parse_directory("version = 1\n" + (written or "client = []"))


# --- credentials ----------------------------------------------------------------------------------------------------


def test_credentials_sign_what_the_others_verify() -> None:
    pairs, directory = federation(3)
    one, two, three = (credentials(pair.private_pem, directory, k) for k, pair in enumerate(pairs, start=1))
    statement = channel_statement(new_session(), PartyId(2), b"a channel key")
    signature = two.sign(statement)
    one.check(statement, signature)
    three.check(statement, signature)
    with pytest.raises(PeerMisbehaved):
        one.check(statement, three.sign(statement))  # client 3 in the place of client 2
    assert one.directory == two.directory == {k: bytes.fromhex(pair.public) for k, pair in enumerate(pairs, start=1)}
    assert pairs[0].private_pem.decode().split("\n")[1] not in repr(one)


def test_credentials_must_fit_the_directory() -> None:
    pairs, directory = federation(2)
    with pytest.raises(IdentityError, match="client 3 is not in the key directory"):
        credentials(pairs[0].private_pem, directory, 3)
    with pytest.raises(IdentityError, match="another public key for client 2 than this private key's"):
        credentials(pairs[0].private_pem, directory, 2)
    with pytest.raises(IdentityError, match="another public key for client 1"):
        credentials(new_identity().private_pem, directory, 1)
    with pytest.raises(IdentityError, match="not a TOML file"):
        credentials(pairs[0].private_pem, "?", 1)


def test_credentials_need_an_ed25519_key() -> None:
    _, directory = federation(2)
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for pem, message in ((b"", "not an unencrypted private key"), (other, "not an Ed25519 one")):
        with pytest.raises(IdentityError, match=message):
            credentials(pem, directory, 1)
