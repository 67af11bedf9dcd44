"""A translated question has the answers that its formula has by the definition: some values of the variables fit."""

import itertools
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.queries.form import translate
from secure_kg.queries.language.formula import And, Atom, Constant, Formula, Not, Or, Same, Variable
from secure_kg.queries.language.places import LanguageError, Place
from secure_kg.queries.language.trees import to_query
from tests.support.small_queries import brute_force

ENTITIES = ("a", "b", "c")
RELATIONS = ("r", "s")
PLACE = Place(1, 1)
Facts = frozenset[tuple[str, str, str]]

facts: st.SearchStrategy[Facts] = st.frozensets(
    st.tuples(st.sampled_from(ENTITIES), st.sampled_from(RELATIONS), st.sampled_from(ENTITIES)), max_size=10
)
variables = st.sampled_from(("x", "y", "z")).map(Variable)
constants = st.sampled_from(ENTITIES).map(Constant)
relations = st.sampled_from(RELATIONS)
atoms: st.SearchStrategy[Formula] = st.one_of(
    st.builds(Atom, relations, variables, constants, st.just(PLACE)),
    st.builds(Atom, relations, constants, variables, st.just(PLACE)),
    st.builds(Atom, relations, variables, variables, st.just(PLACE)),
    st.builds(Same, variables, constants, st.just(PLACE)),
)


def larger(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(And, parts, st.just(PLACE)),
        st.builds(Or, parts, st.just(PLACE)),
        st.builds(Not, inner, st.just(PLACE)),
    )


formulas = st.recursive(atoms, larger, max_leaves=6)


def holds(formula: Formula, values: Mapping[str, str], known: Facts) -> bool:
    """Whether a formula holds for these values of the variables; those of a negated part alone may have any."""

    def value(term: Variable | Constant) -> str:
        return values[term.name] if isinstance(term, Variable) else term.name

    match formula:
        case Atom(relation=relation, first=first, second=second):
            return (value(first), relation, value(second)) in known
        case Same(variable=variable, entity=entity):
            return values[variable.name] == entity.name
        case And(parts=parts):
            return all(holds(part, values, known) for part in parts)
        case Or(parts=parts):
            return any(holds(part, values, known) for part in parts)
        case Not(of=of):
            return not some_fit(of, values, known)


def some_fit(formula: Formula, values: Mapping[str, str], known: Facts) -> bool:
    free = sorted(formula.positive - values.keys())
    choices = itertools.product(ENTITIES, repeat=len(free))
    return any(holds(formula, {**values, **dict(zip(free, chosen, strict=True))}, known) for chosen in choices)


def check(formula: Formula, known: Facts) -> bool:
    """Compares the answers; False if the formula is refused."""
    try:
        query = to_query("x", formula, PLACE)
    except LanguageError:
        return False
    ids = translate(query, ENTITIES.index, RELATIONS.index)
    triples = [(ENTITIES.index(h), RELATIONS.index(r), ENTITIES.index(t)) for h, r, t in known]
    expected = {number for number, name in enumerate(ENTITIES) if some_fit(formula, {"x": name}, known)}
    assert brute_force(triples, ids, len(ENTITIES)) == expected
    return True


@given(formulas, facts)
@settings(max_examples=400)
def test_a_question_means_what_its_formula_means(formula: Formula, known: Facts) -> None:
    check(formula, known)


@given(st.lists(atoms, min_size=1, max_size=2), st.lists(atoms, min_size=1, max_size=2), atoms, facts)
@settings(max_examples=200)
def test_alternatives_over_two_variables_mean_the_same(
    one: list[Formula], other: list[Formula], rest: Formula, known: Facts
) -> None:
    check(And((Or((And(tuple(one), PLACE), And(tuple(other), PLACE)), PLACE), rest), PLACE), known)


def test_formulas_are_not_all_refused() -> None:
    """Else the tests above would compare nothing."""
    link, leaf = Atom("r", Variable("y"), Variable("x"), PLACE), Atom("s", Variable("y"), Constant("a"), PLACE)
    known = frozenset({("b", "r", "c"), ("b", "s", "a"), ("c", "r", "c")})
    assert check(And((link, leaf), PLACE), known)
    assert check(And((link, Not(leaf, PLACE)), PLACE), known)
    assert check(Not(And((link, leaf), PLACE), PLACE), known)
    assert check(And((Or((link, Atom("s", Variable("x"), Variable("y"), PLACE)), PLACE), leaf), PLACE), known)
    assert not check(link, known)
