"""Tables and sentences of the documents, rendered from the disclosures of the registered protocols.

A document has them between marker comments: `<!-- rendered: NAME -->` and `<!-- end of NAME -->`. `make tables` writes
them again, and a test compares.
"""

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from protocols.exact.disclosure import EXACT_ANSWERS
from protocols.foundation.disclosure import SLOTS, Disclosure, Subject, learned
from protocols.holders.disclosure import SECRET_COUNT
from protocols.lookup_registry import LOOKUPS
from protocols.lookups.disclosure import NAME_LOOKUPS, STEPS, VECTOR_LOOKUPS
from protocols.registry import AGGREGATIONS, ALIGNMENTS, SCORES
from protocols.scores.disclosure import UNLIMITED_MEANS
from protocols.scores.topk.disclosure import HIDDEN_QUERIES
from protocols.session.disclosure import GROUP_KEY
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError

IN_GENERAL: Final = dict.fromkeys(SLOTS, "") | {"shared": "shared", "least": "N", "others": "N - 1"}
"""Slots of words about a protocol, where no run fills them in."""
_WIDTH: Final = 120
_LEARNED: Final = ("about", "the server learns", "another client learns")


def who_learns_what() -> str:
    """For docs/who-learns-what.md: by option."""
    body: list[list[str]] = []
    for option, disclosures, subjects in _choices():
        body += _subjects(f"`{option}`" + _default(option), disclosures, subjects)
    body += _subjects("private unions, secure and secret sums", (GROUP_KEY,))
    for_rare = "`--min-holders N` (default: declared corrupt clients + 2; 3 of 5 clients)"
    body += _subjects(for_rare, (SECRET_COUNT,), [Subject.RARE_ROWS])
    body.append(["`--strategy local`", "validation and test metrics, participation in sums", "as above", "as above"])
    body.append(["`python -m launch.entire`", "everything", "everything: whoever runs it reads all triples", ""])
    return markdown_table(("choice", *_LEARNED), body)


def default_run() -> str:
    """For README.md: what the server learns in a run of default settings."""
    config = RunConfig()
    sums, alignment = AGGREGATIONS[config.aggregation], ALIGNMENTS[config.alignment]
    keys = (GROUP_KEY,) if sums.needs_keys or alignment.needs_keys else ()
    every = *alignment.disclosures(reveal_names=config.reveal_names), sums.disclosure, sums.count.disclosure, *keys
    told = [[subject, server] for _, subject, server, _ in _subjects("", every)]
    text = markdown_table(("about", "in a default run the server learns"), told)
    if more := sums.disclosure.changing_clients.format_map(IN_GENERAL):
        text += "\n\n" + textwrap.fill(f"When clients drop out, {more}.", width=_WIDTH, break_on_hyphens=False)
    return text


def protocols_reveal() -> str:
    """For protocols/README.md: by protocol."""
    body: list[list[str]] = []
    for disclosure in run_protocols():  # scores have an asker: docs/scores.md
        first, *more = _subjects(f"`{disclosure.place}`", (disclosure,))
        body += [[*first, disclosure.against], *([*row, ""] for row in more)]
    head = ("protocol", "about", "the server learns", "a client learns", "adversary it stands against")
    return markdown_table(head, body)


def protocols_assume() -> str:
    """For SECURITY.md: by protocol."""
    head = ("protocol", "stands against", "what a client on the server's side opens to it", "assumes", "not covered")
    every = (*run_protocols(), *score_protocols())
    body = [[one.title, one.against, one.with_a_client, one.assumes, one.not_covered] for one in every]
    return markdown_table(head, body)


_SCORE_NAMES: Final = {
    HIDDEN_QUERIES.title: "`topk` with hidden queries",
    UNLIMITED_MEANS.title: "`--allow-extraction` adds, where means open",
    VECTOR_LOOKUPS.title: VECTOR_LOOKUPS.title,
    NAME_LOOKUPS.title: NAME_LOOKUPS.title,
    EXACT_ANSWERS.title: EXACT_ANSWERS.title,
    STEPS.title: STEPS.title,
}


def scores_reveal() -> str:
    """For docs/scores.md: by score backend, the asker's column beside the others."""
    body: list[list[str]] = []
    for disclosure in score_protocols():
        rows = [
            [subject.value, told.server, told.client, told.asker]
            for subject in Subject
            if (told := disclosure.learned.get(subject)) is not None
        ]
        words = [[cell.format_map(IN_GENERAL) for cell in row] for row in rows]
        name = _SCORE_NAMES.get(disclosure.title, f"`{disclosure.place.rpartition('/')[2]}`")
        body += [["" if number else name, *row] for number, row in enumerate(words)]
    return markdown_table(("backend", "about", "the server learns", "another client learns", "the asker learns"), body)


TABLES: Final[dict[str, Callable[[], str]]] = {
    "default run": default_run,
    "who learns what": who_learns_what,
    "what protocols reveal": protocols_reveal,
    "what protocols assume": protocols_assume,
    "who learns what of scores": scores_reveal,
}
DOCUMENTS: Final = {
    "README.md": ("default run",),
    "docs/who-learns-what.md": ("who learns what",),
    "protocols/README.md": ("what protocols reveal",),
    "SECURITY.md": ("what protocols assume",),
    "docs/scores.md": ("who learns what of scores",),
}
"""Which document has which of them."""


def all_rendered(text: str, names: Iterable[str]) -> str:
    """A document's text with all that is rendered in it."""
    for name in names:
        text = rendered(text, name)
    return text


def rendered(text: str, name: str) -> str:
    """A document's text with its table of this name as it must be; `UserError` unless it has its place once."""
    marked = re.compile(rf"(<!-- rendered: {name} -->\n).*?(\n<!-- end of {name} -->)", re.DOTALL)
    if len(marked.findall(text)) != 1:
        raise UserError(f"no place, or more than one, for the table '{name}'")
    return marked.sub(lambda found: f"{found[1]}\n{TABLES[name]()}\n{found[2]}", text)


def _choices() -> Iterator[tuple[str, tuple[Disclosure, ...], Collection[Subject]]]:
    """Every choice, with the protocols that it brings along, and what it makes a difference to."""
    for alignment in ALIGNMENTS.values():
        yield f"--alignment {alignment.name}", alignment.disclosures(reveal_names=False), frozenset(Subject)
        if alignment.revealing is not None:
            option, both = f"--alignment {alignment.name} --reveal-names", alignment.disclosures(reveal_names=True)
            yield option, both, alignment.revealing.learned
    for sums in AGGREGATIONS.values():  # rows of few holders have a choice of their own
        both = (sums.disclosure, sums.count.disclosure)
        yield f"--aggregation {sums.name}", both, set(Subject) - {Subject.RARE_ROWS}


def _default(option: str) -> str:
    config = RunConfig()
    usual = (f"--alignment {config.alignment}", f"--aggregation {config.aggregation}")
    return " (default)" if option in usual else ""


def run_protocols() -> Iterator[Disclosure]:
    """Each once: sums, counts of holders, alignments, keys."""
    sums = [one.disclosure for one in AGGREGATIONS.values()]
    counts = [one.count.disclosure for one in AGGREGATIONS.values()]
    alignments = [one for bundle in ALIGNMENTS.values() for one in (bundle.disclosure, bundle.revealing) if one]
    yield from {one.place: one for one in (*sums, *counts, *alignments, GROUP_KEY)}.values()


def score_protocols() -> Iterator[Disclosure]:
    """Each once: score backends, hidden queries, what opening means without a limit adds, and lookups."""
    every = list(SCORES.values())
    unlimited = [bundle.unlimited for bundle in every if bundle.unlimited is not None]
    lookups = [bundle.disclosure for bundle in LOOKUPS.values()]
    all_of_them = (*(bundle.disclosure for bundle in every), HIDDEN_QUERIES, *unlimited, *lookups, STEPS)
    yield from {one.place: one for one in all_of_them}.values()


def _subjects(
    name: str, disclosures: Iterable[Disclosure], subjects: Collection[Subject] = frozenset(Subject)
) -> list[list[str]]:
    """One row for each subject; the name stands in the first."""
    rows: list[list[str]] = []
    for subject in Subject:
        if subject in subjects and (told := learned(disclosures, subject)) is not None:
            words = (one.format_map(IN_GENERAL) for one in (subject.value, told.server, told.client))
            rows.append(["" if rows else name, *words])
    return rows


def markdown_table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A table of a document, line by line."""
    names = tuple(head)
    return "\n".join([_line(names), "|" + "---|" * len(names), *map(_line, body)])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
