"""For tests of pages: a reader that insists on well-formed HTML, and a record of an audit with one of everything."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"img", "meta", "wbr"})


@dataclass
class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on an element that is not closed, or closed out of turn."""

    source: str
    opened: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()
        assert self.opened == [], f"never closed: {self.opened}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened, f"{tag} closed, never opened"
        assert self.opened.pop() == tag, f"{tag} closed out of turn"

    def handle_data(self, data: str) -> None:
        if self.opened and self.opened[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


def outward(page: Page) -> list[str]:
    """Every reference to something outside of the page."""
    style = page.source[page.source.index("<style>") : page.source.index("</style>")]
    found = [word for word in ("http:", "https:", "//", "url(", "@import") if word in style.lower()]
    for name in ("href", "src", "srcset", "action", "data", "poster", "xlink:href", "background"):
        found += [value for value in page.values(name) if not value.startswith(("#", "data:image/png;base64,"))]
    found += [value for value in page.values("style") if "url" in value or "//" in value]
    return found + [
        tag for tag, _ in page.tags if tag in ("script", "link", "iframe", "object", "embed", "base", "form")
    ]


def entry(field_class: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": f"Kind{field_class.title()}",
        "field": "vector",
        "direction": "received",
        "purpose": "rows",
        "class": field_class,
        "meaning": f"meaning of {field_class}",
        "declared": True,
        "messages": 12,
        "bytes": 3000,
        "first_round": 0,
        "last_round": 4,
        "rounds": 5,
        "clients": [1, 2],
        **changes,
    }


def finding(id: str, severity: str, **changes: Any) -> dict[str, Any]:
    told = {"title": f"title of {id}", "evidence": [f"evidence of {id}"], "explanation": f"explanation of {id}"}
    return {"id": id, "severity": severity, **told, **changes}


def attack(id: str, against: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": id,
        "title": f"title of {id}",
        "against": against,
        "knowledge": f"knowledge of {id}",
        "scores": {"ERR": 0.75, "TRR": 0.5},
        "chance": {"ERR": 0.125, "TRR": 0.0625},
        "succeeded": True,
        "explanation": f"explanation of {id} on {against}",
        "sizes": {"entities": 14},
        **changes,
    }


def a_sum(purpose: str, number: int, contributors: list[int], **changes: Any) -> dict[str, Any]:
    told = {"threshold": 2, "read_by_server": True, "problem": ""}
    return {"round": number, "purpose": purpose, "contributors": contributors, **told, **changes}


def empty_record() -> dict[str, Any]:
    """An audit of nothing."""
    return {
        "version": 1,
        "run": "quiet-run",
        "settings": {
            "strategy": "fede",
            "alignment": "psu",
            "aggregation": "secagg",
            "adversary": "semi-honest",
            "clients": 3,
            "min_holders": 2,
            "client_fraction": 1.0,
            "reveal_names": False,
        },
        "verdict": {"high": 0, "exit_code": 0},
        "may_learn": [],
        "findings": [],
        "checks": [],
        "ledger": [],
        "attacks": [],
        "attacks_not_tried": "",
        "sums": [],
        "traffic": {"messages": 0, "bytes_up": 0, "bytes_down": 0, "bytes_by_round": {}, "bytes_by_kind": {}},
        "notes": [],
    }


def full_record() -> dict[str, Any]:
    """An audit with one of everything."""
    statuses = ("passed", "failed", "nothing to check")
    return empty_record() | {
        "may_learn": ["who takes part", "how many names there are"],
        "findings": [finding("odd-times", "low"), finding("clear-rows", "high"), finding("note", "info")],
        "checks": [
            {
                "id": status,
                "question": f"question {status}?",
                "looked_at": f"saw {status}",
                "status": status,
                "findings": [],
            }
            for status in statuses
        ],
        "ledger": [entry(name) for name in ("public", "ciphertext", "masked", "aggregate", "clear")],
        "attacks": [
            *(attack(f"reconstruct-fede-{share}", f"client {client}") for share in (100, 30) for client in (10, 2)),
            attack("weak-seed", "aggregate", succeeded=False, scores={"opened": -0.5}, chance={"opened": 0.0}),
        ],
        "sums": [
            a_sum("rows", 1, [1, 2]),
            a_sum("rows", 2, [1, 2]),
            a_sum("rows", 3, [2, 3], problem="a share is missing"),
        ],
        "traffic": {
            "messages": 1234,
            "bytes_up": 15_500_000,
            "bytes_down": 2_000_000,
            "bytes_by_round": {"0": {"up": 500_000, "down": 0}, "1": {"up": 15_000_000, "down": 2_000_000}},
            "bytes_by_kind": {"MaskedInput": {"up": 15_500_000, "down": 0}},
        },
        "notes": [{"title": "A sum says something", "text": "It hides single contributions only."}],
    }
