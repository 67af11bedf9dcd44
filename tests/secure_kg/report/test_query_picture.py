"""Pictures of queries: every atom once, arrows in the direction of their relations, nothing over anything else."""

import re
from xml.etree import ElementTree

import pytest

from secure_kg.queries.form import Anchor, NamedQuery, Negation, Projection, relations, translate, union
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.language.writing import to_text
from secure_kg.queries.structures import STRUCTURES
from secure_kg.report.query_picture import LONGEST_NAME, MOST_DRAWN, query_picture

HOSTILE = "<script>alert(1)</script>'\"&\n\u202e\u061cabc"
GENERAL = (
    '?x : r(?x, "a") & !(s(?x, "b") & t(?x, ?y) & u(?y, "c")) & (v("d", ?x) | w(?x, "e") & z(?x, "f"))',
    '?x : ?x = "a" | r(?x, "b")',
    '?x : !(!(r("a", ?x))) & s("a", ?x)',
)
Numbers = tuple[float, ...]


def named(kind: str) -> NamedQuery:
    """A query of a type whose relations and entities have names of their own."""
    return translate(STRUCTURES[kind], "e{}".format, "r{}".format)


def drawn(query: NamedQuery) -> ElementTree.Element:
    found = ElementTree.fromstring(query_picture(query)).find(".//svg")
    assert found is not None
    return found


def of_style(picture: ElementTree.Element, style: str) -> list[ElementTree.Element]:
    return [group for group in picture.iter("g") if style in group.get("class", "").split()]


def title(group: ElementTree.Element) -> str:
    return group.findtext("title") or ""


def box(group: ElementTree.Element) -> Numbers:
    """Left, top, right and bottom of a spot."""
    shape = group.find("rect")
    assert shape is not None
    x, y, width, height = (float(shape.get(name, "nan")) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def tip(atom: ElementTree.Element) -> Numbers:
    head = atom.find("polygon")
    assert head is not None
    return tuple(map(float, head.get("points", "").split()[0].split(",")))


def near(point: Numbers, place: Numbers) -> bool:
    left, top, right, bottom = place
    return left - 1 <= point[0] <= right + 1 and top - 1 <= point[1] <= bottom + 1


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_atom_of_a_named_type_is_drawn_once_and_points_where_its_relation_leads(kind: str, inverse: bool) -> None:
    query = turned(named(kind)) if inverse else named(kind)
    picture, text = drawn(query), to_text(query)
    atoms = {title(atom): atom for atom in of_style(picture, "atom")}
    assert sorted(atoms) == sorted(re.findall(r"\w+\([^()]*\)", text))
    spots = [group for group in of_style(picture, "spot") if "entity" in str(group.get("class"))]
    assert sorted(map(title, spots)) == sorted(re.findall(r'"e\d+"', text))
    for written, atom in atoms.items():
        second = written.removesuffix(")").split(", ")[1]
        ends = [box(group) for group in of_style(picture, "spot") if title(group).split(":")[0] == second]
        assert any(near(tip(atom), end) for end in ends), written
    for style, kind_of_part in (("or", "u"), ("not", "n")):
        assert len(of_style(picture, style)) == (kind_of_part in kind)
    assert len(of_style(picture, "target")) == 1


def turned(query: NamedQuery) -> NamedQuery:
    """With all relations the other way."""
    match query:
        case Projection(relation=relation, of=of, inverse=inverse):
            return Projection(relation, turned(of), not inverse)
        case Negation(of=of):
            return Negation(turned(of))
        case Anchor():
            return query
        case _:
            return type(query)(tuple(map(turned, query.parts)))


@pytest.mark.parametrize("query", [*map(named, STRUCTURES), *map(read_question, GENERAL)], ids=str)
def test_nothing_stands_over_anything_else_or_outside(query: NamedQuery) -> None:
    picture = drawn(query)
    _, _, width, height = map(float, picture.get("viewBox", "").split())
    boxes = [box(group) for group in of_style(picture, "spot")]
    for place, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        for other in boxes[:place]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    assert len(of_style(picture, "atom")) == len(relations(query))


def test_links_below_a_negation_are_told_apart() -> None:
    picture = drawn(named("pin"))
    assert {title(atom): "negated" in str(atom.get("class")) for atom in of_style(picture, "atom")} == {
        'r1("e0", ?x1)': False,
        "r2(?x1, ?x)": False,
        'r4("e3", ?x)': True,
    }


def test_what_is_said_of_one_variable_inside_of_a_union_or_a_negation_meets() -> None:
    picture = drawn(read_question(GENERAL[0]))
    assert len(of_style(picture, "and")) == 2
    assert [group.findtext("text") for group in of_style(drawn(read_question(GENERAL[1])), "join")] == [None, "="]


def test_hostile_and_long_names_are_words() -> None:
    long = "very" * 50
    picture = drawn(union([Projection(HOSTILE, Anchor(HOSTILE)), Projection(long, Anchor(long))]))
    assert {element.tag for element in picture.iter()} <= {"svg", "g", "title", "text", "rect", "path", "polygon"}
    shown = "".join(picture.itertext())
    assert "\u202e" not in shown
    assert "\u061c" not in shown
    assert "\n" not in shown
    assert "<script>alert(1)</script>'\\\"&\\n\\u202e\\u061cabc" in shown
    assert all(len(text.text or "") <= LONGEST_NAME for text in picture.iter("text"))
    assert any(long in title(atom) for atom in of_style(picture, "atom"))


def test_a_query_that_nobody_could_read_is_not_drawn() -> None:
    many = union(Projection("r", Anchor(f"e{number}")) for number in range(MOST_DRAWN + 1))
    assert "<svg" not in query_picture(many)
    assert f"{MOST_DRAWN + 1} atoms" in query_picture(many)
    deep: NamedQuery = Anchor("a")
    for _ in range(MOST_DRAWN):
        deep = Projection("r", deep)
    assert len(of_style(drawn(deep), "atom")) == MOST_DRAWN
