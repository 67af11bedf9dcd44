"""Base of all records in JSON files: typed fields, and open mappings for figures that a learner names itself.

A record on disk is one flat object. Its keys are the names of the fields, in their order; the keys of an open mapping
stand among them, in its place. A key without a field of its own, whether a learner's figure or something that another
version writes, is read into the next open mapping after the keys before it. So a record that is read and written again
has the same keys in the same order. In a file whose keys somebody has put into another order, the first open mapping
takes all of them.
"""

import threading
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeAlias

import msgspec

from secure_kg.foundation.errors import UserError

Figures: TypeAlias = dict[str, Any]
"""Figures by names that a learner, or another version of this program, has given them."""

_CONVERTING: Final = threading.Lock()
"""msgspec reads the fields of a type at its first use. Parties that are threads must not make it do so at once."""


class WrongRecord(UserError):
    """A file that is JSON, but has no record of the kind that is looked for."""


class Record(msgspec.Struct, frozen=True):
    """One JSON object. What a later version has added has a default, for files of earlier ones."""

    kind: ClassVar[str]
    """The record in the words of an error, e.g. "summary of a run"."""
    opened: ClassVar[tuple[str, ...]] = ()
    """The fields that are open mappings."""
    nested: ClassVar[dict[str, type["Record"]]] = {}
    """Fields that are lists of records with open mappings of their own."""
    absent: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not written while they are None. Others are written as null."""

    def to_json(self) -> Figures:
        """The object as it stands in the file."""
        written: Figures = {}
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if field.name in self.opened:
                written |= value
            elif value is not msgspec.UNSET and (value is not None or field.name not in self.absent):
                written[field.encode_name] = _written(value)
        return written

    @classmethod
    def from_json(cls, value: object, where: object) -> Self:
        """The record in an object that was read. `WrongRecord` if it is none of this kind. `where` names the file."""
        if not isinstance(value, dict):
            raise WrongRecord(f"{where}: not a {cls.kind}")
        found = cls._sorted(value, where)
        try:
            with _CONVERTING:
                return msgspec.convert(found, cls)
        except msgspec.ValidationError as problem:
            raise WrongRecord(f"{where}: not a {cls.kind} ({problem})") from None

    @classmethod
    def _sorted(cls, value: Figures, where: object) -> Figures:
        """The items by field: those without one in the open mappings."""
        fields = _fields(cls)
        places = {field.encode_name: place for place, field in enumerate(fields) if field.name not in cls.opened}
        mappings = {place: Figures() for place, field in enumerate(fields) if field.name in cls.opened}
        known = [places[key] for key in value if key in places]
        in_order, last = known == sorted(known), -1
        found: Figures = {fields[place].name: mapping for place, mapping in mappings.items()}
        for key, item in value.items():
            if key in places:
                last = places[key]
                found[key] = cls._inner(fields[last].name, item, where)
                continue
            following = [mapping for place, mapping in mappings.items() if place > last or not in_order]
            if following:
                following[0][key] = item
        return found

    @classmethod
    def _inner(cls, name: str, item: object, where: object) -> object:
        inner = cls.nested.get(name)
        return [inner.from_json(one, where) for one in item] if inner is not None and isinstance(item, list) else item


@cache
def _fields(kind: type[Record]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Kept: msgspec would read the annotations again for every record."""
    return msgspec.structs.fields(kind)


def _written(value: Any) -> Any:
    match value:
        case Record():
            return value.to_json()
        case list() | tuple():
            return [_written(item) for item in value]
        case dict():
            return {key: _written(item) for key, item in value.items()}
        case _:
            return value
