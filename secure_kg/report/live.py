"""Live page of one party of a run: rendered from its status, in parts that a small script renews by themselves.

Without scripts the page loads itself again. It has no other file, and shows words of others as text.
"""

from typing import Final

from secure_kg.foundation.words import seconds_text
from secure_kg.report.charts import bar_chart, line_chart
from secure_kg.report.html import (
    Html,
    bullets,
    cards,
    chip,
    details,
    document,
    figure,
    join,
    megabytes,
    quiet,
    stacked_table,
    tag,
)
from secure_kg.report.live_status import LiveStatus, Peer, Stage
from secure_kg.report.style import STYLE

POLL_SECONDS: Final = 2
RELOAD_SECONDS: Final = 5
_STYLE: Final = """
.rounds { height: 1.1rem; background: var(--soft); border: 1px solid var(--edge); border-radius: .55rem;
  overflow: hidden; margin: .6rem 0 .2rem; }
.rounds i { display: block; height: 100%; background: var(--main); transition: width .4s; }
.rounds.done i { background: var(--good); } .rounds.failed i { background: var(--bad); }
.log { background: var(--soft); border-radius: .4rem; padding: .5rem .8rem; margin: .4rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.head { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: center; }
svg { overflow: visible; }
#lost { margin: 1rem 0 0; } #lost[hidden] { display: none; }
@media (prefers-reduced-motion: reduce) { .rounds i { transition: none; } }
"""
_SCRIPT: Final = """
(function () {
  var shown = {}, lost = document.getElementById("lost");
  function ask() {
    fetch("/status.json", {cache: "no-store"}).then(function (answer) {
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    }).then(function (status) {
      lost.hidden = true;
      Object.keys(status.parts).forEach(function (name) {
        var place = document.getElementById(name);
        if (place && shown[name] !== status.parts[name]) {
          if (shown[name] !== undefined || name !== "disclosures") place.innerHTML = status.parts[name];
          shown[name] = status.parts[name];
        }
      });
      document.title = status.title;
    }).catch(function () { lost.hidden = false; }).then(function () {
      setTimeout(ask, SECONDS * 1000);
    });
  }
  setTimeout(ask, SECONDS * 1000);
})();
""".replace("SECONDS", str(POLL_SECONDS))
_CHIPS: Final = {Stage.DONE: "yes", Stage.FAILED: "no"}


def live_page(status: LiveStatus, nonce: str) -> str:
    """The whole page. `nonce`: of the header that allows its style and its script, drawn for this answer."""
    lost = "No answer: this party's process has ended, or cannot be reached. What is below is the last that it told."
    parts = [tag("div", Html(markup), id=name) for name, markup in live_parts(status).items()]
    reload = tag("noscript", tag("meta", http_equiv="refresh", content=str(RELOAD_SECONDS)))
    # The script stands at the end: the parts are there when it runs.
    return document(
        live_title(status),
        tag("p", lost, class_="warning", id="lost", role="status", hidden=""),
        *parts,
        tag("script", Html(_SCRIPT), nonce=nonce),
        more=[reload],
        style=tag("style", Html(STYLE + _STYLE), nonce=nonce),
    )


def live_title(status: LiveStatus) -> str:
    """Of the page, as a tab shows it."""
    return f"{status.share:.0%} · {status.who.title}"


def live_parts(status: LiveStatus) -> dict[str, str]:
    """Markup by the name of the part that it fills."""
    parts = {
        "progress": [*_head(status), *_links(status), _cards(status)],
        "peers": _peers(status),
        "results": _results(status),
        "times": _times(status),
        "disclosures": _disclosures(status),
        "log": _log(status),
    }
    return {name: str(join(content)) for name, content in parts.items()}


def _head(status: LiveStatus) -> list[Html]:
    state = chip(status.stage.value, _CHIPS.get(status.stage, ""))
    problem = [tag("p", status.problem, class_="verdict bad")] if status.problem else []
    return [tag("div", tag("h1", status.who.title), state, class_="head"), _bar(status), quiet(_told(status)), *problem]


def _bar(status: LiveStatus) -> Html:
    style = {Stage.DONE: "rounds done", Stage.FAILED: "rounds failed"}.get(status.stage, "rounds")
    percent = f"{100 * status.share:.0f}"
    inside = tag("i", style=f"width:{percent}%")
    limits = {"aria_valuemin": "0", "aria_valuemax": "100", "aria_valuenow": percent, "aria_label": "rounds done"}
    return tag("div", inside, class_=style, role="progressbar", **limits)


def _told(status: LiveStatus) -> str:
    """One line on rounds, phase and time."""
    if status.stage is Stage.DONE:
        return f"after {status.done} rounds" if status.rounds is None else _of(status)
    words = [_of(status)]
    if status.phase and not status.stage.over:
        step, _, purpose = status.phase.partition("/")
        words.append(f"phase: {step}" + (f" ({purpose})" if purpose else ""))
    if status.left is not None:
        words.append(f"at most about {seconds_text(max(status.left, 1.0))} left")
    return " · ".join(words)


def _of(status: LiveStatus) -> str:
    most = "" if status.rounds is None else f" of at most {status.rounds}"
    return f"{status.done}{most} rounds done"


def _links(status: LiveStatus) -> list[Html]:
    names = {"report.html": "Report of this run", "audit.html": "Audit of this run"}
    links = [tag("a", names.get(name, name), href=f"/{name}") for name in status.pages]
    return [tag("p", join(links, " · "))] if links else []


def _cards(status: LiveStatus) -> Html:
    entries = [(seconds_text(status.elapsed), "so far" if not status.stage.over else "in all")]
    if status.who.serves:
        here = sum(peer.present for peer in status.peers)
        entries.append((f"{here} of {len(status.peers)}", "clients present"))
    entries += [(megabytes(status.up), "to the server"), (megabytes(status.down), "from the server")]
    if status.evaluations:
        entries.append(
            (f"{status.evaluations[-1][1]:.4f}", f"validation {status.metric}, round {status.evaluations[-1][0]}")
        )
    return cards(entries)


def _peers(status: LiveStatus) -> list[Html]:
    if not status.peers:
        return []
    if not status.who.serves:
        peer = status.peers[0]
        return [tag("h2", "Connection"), tag("p", "server ", _presence(peer, "connected"))]
    body = [
        [peer.who.label, _presence(peer, "present"), megabytes(peer.up), megabytes(peer.down)] for peer in status.peers
    ]
    return [tag("h2", "Clients"), stacked_table(("", "state", "to the server", "from the server"), body)]


def _presence(peer: Peer, word: str) -> Html:
    state = chip(word, "yes") if peer.present else chip("missing", "no")
    return tag("span", state, f" {peer.note}" if peer.note else "")


def _results(status: LiveStatus) -> list[Html]:
    """The server's, as far as it reads them; a client's page has no such part."""
    if not status.who.serves:
        return []
    title = tag("h2", "Validation")
    if status.sealed:
        return [title, quiet("Clients alone can read results in this run.")]
    if not status.evaluations:
        return [title, quiet("no evaluation yet")]
    chart = line_chart(status.evaluations, "round", f"validation {status.metric}")
    return [title, figure(chart, f"validation {status.metric} of those present", "narrow")]


def _times(status: LiveStatus) -> list[Html]:
    if not status.seconds:
        return []
    return [
        tag("h2", "Where the time goes"),
        figure(bar_chart(status.seconds, "s"), f"seconds of {'the server' if status.who.serves else 'this client'}"),
    ]


def _disclosures(status: LiveStatus) -> list[Html]:
    disclosed = status.disclosed
    if disclosed is None:
        return []
    rows = [[one.heading, one.server, one.client] for one in disclosed.statements()]
    return [
        tag("h2", "Who learns what in this run"),
        stacked_table(("", "the server learns", "another client learns"), rows),
        quiet(f"Against {disclosed.sums.disclosure.against}."),
        details("What one client on the server's side opens to it", bullets(disclosed.with_a_client())),
    ]


def _log(status: LiveStatus) -> list[Html]:
    if not status.log:
        return []
    return [tag("h2", "Last lines of the log"), tag("pre", "\n".join(status.log), class_="log")]
