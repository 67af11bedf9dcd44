"""Report section on attacks: every score as a bar, with a mark where guessing stands."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from secure_kg.audit.records.parts import AttackResult
from secure_kg.report.html import Html, bullets, chip, details, prose, quiet, stacked_table, tag


@dataclass(slots=True)
class Family:
    """Attacks of one kind, on different clients and with different shares of what a colluder knows."""

    title: str
    attacks: list[tuple[int | None, AttackResult]] = field(default_factory=list)
    """With how many percent were leaked, where that makes a difference."""

    @property
    def won(self) -> int:
        return sum(attack.succeeded for _, attack in self.attacks)

    @property
    def scores(self) -> list[str]:
        return list(dict.fromkeys(name for _, attack in self.attacks for name in attack.scores))


def families(attacks: Iterable[AttackResult]) -> list[Family]:
    """By id: a number at its end is the percentage that leaked."""
    found: dict[str, Family] = {}
    for attack in attacks:
        name, percent = _parted(attack.id)
        title = re.sub(r",? \d+ ?% leaked$", "", attack.title) if percent is not None else attack.title
        found.setdefault(name, Family(title)).attacks.append((percent, attack))
    for family in found.values():
        family.attacks.sort(key=lambda one: (one[0] or 0, _natural(one[1].against)))
    return list(found.values())


def attack_section(attacks: Sequence[AttackResult], not_tried: str) -> list[Html]:
    if not attacks:
        return [tag("p", prose(f"No attack was tried. {not_tried}".rstrip()))]
    told = (
        "Each bar is the share an attacker got right; the upright mark is what guessing gets. An attack has succeeded "
        "if it is better than guessing by more than luck and by enough to matter. ERR, RRR and TRR: the share of the "
        "client's entities, relations and triples that were named rightly; of nameable: of those only for which the "
        "attacker had a name at all."
    )
    return [quiet(told), *(_family(family) for family in families(attacks))]


def _family(family: Family) -> Html:
    won, tried = family.won, len(family.attacks)
    result = chip(f"{won} of {tried} succeeded", "no" if won else "yes")
    words = [_in_words(percent, attack) for percent, attack in family.attacks]
    return tag(
        "article",
        tag("h3", family.title, " ", result),
        *(_leaked(family, percent) for percent in dict.fromkeys(percent for percent, _ in family.attacks)),
        details("In words", bullets(words)),
        class_="finding " + ("high" if won else ""),
    )


def _in_words(percent: int | None, attack: AttackResult) -> str:
    share = f", {percent} % leaked" if percent is not None else ""
    return f"{attack.against}{share}: {attack.explanation}"


def _leaked(family: Family, percent: int | None) -> Html:
    """The attacks of a family that had the same share of what a colluder knows."""
    attacks, scores = [attack for share, attack in family.attacks if share == percent], family.scores
    known = " / ".join(dict.fromkeys(attack.knowledge for attack in attacks))
    caption = f"The attacker had: {known}"
    body = [
        [
            attack.against,
            *(_score(attack, name) for name in scores),
            chip("succeeded", "no") if attack.succeeded else chip("failed", "yes"),
        ]
        for attack in attacks
    ]
    title = [tag("h4", f"{percent} % leaked")] if percent is not None else []
    return tag("div", *title, stacked_table(("against", *scores, "attack"), body, caption))


def _score(attack: AttackResult, name: str) -> Html | str:
    if name not in attack.scores:
        return ""
    value, chance = attack.scores[name], attack.chance[name]
    style = "won" if attack.succeeded and value > chance else None
    bar = tag(
        "span",
        tag("i", class_=style, style=f"width:{_within(value):.1f}%"),
        tag("b", style=f"left:calc({_within(chance):.1f}% - 1px)"),
        class_="score",
        aria_hidden="true",
    )
    return tag("div", tag("b", f"{value:.1%}"), tag("span", f"chance {chance:.1%}", class_="quiet"), bar, class_="rate")


def _within(share: float) -> float:
    return 100 * min(max(share, 0.0), 1.0)


def _parted(attack: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(.*)-(\d+)", attack)
    return (found[1], int(found[2])) if found else (attack, None)


def _natural(name: str) -> list[tuple[int, str]]:
    """Client 2 before client 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
