"""The style sheet of all pages: light and dark, a phone's width and paper. No other file is needed to show them."""

from typing import Final

PALETTE: Final = """--ink: #1d2433; --quiet: #596273; --paper: #fff; --edge: #d8dde6; --soft: #f3f5f9;
  --main: #2563a8; --second: #d98a1f; --good: #1c7a3f; --bad: #b3261e;
  --s0: #2563a8; --s1: #d98a1f; --s2: #2a9d8f; --s3: #8e5bbf; --s4: #aab2bf; --s5: #c0453b; --s6: #5a8f29;
  --s7: #c2569b; --s8: #6b7280;
  --public: #8a94a6; --ciphertext: #2563a8; --masked: #2a9d8f; --aggregate: #d98a1f; --clear: #c0332b;"""
"""Colours on a light ground."""
CHARTS: Final = """\
.grid { stroke: var(--edge); } .mark { stroke: var(--quiet); stroke-dasharray: 4 4; }
.line { fill: none; stroke: var(--main); stroke-width: 2; } .dot { fill: var(--main); }
.tick { fill: var(--quiet); font-size: 13px; }
.s0 { fill: var(--s0); background: var(--s0); } .s1 { fill: var(--s1); background: var(--s1); }
.s2 { fill: var(--s2); background: var(--s2); } .s3 { fill: var(--s3); background: var(--s3); }
.s4 { fill: var(--s4); background: var(--s4); } .s5 { fill: var(--s5); background: var(--s5); }
.s6 { fill: var(--s6); background: var(--s6); } .s7 { fill: var(--s7); background: var(--s7); }
.s8 { fill: var(--s8); background: var(--s8); }
"""
"""Of lines, dots, ticks and series."""
QUERIES: Final = """\
.query text { fill: var(--ink); font: 13px ui-monospace, monospace; }
.query path { fill: none; stroke: var(--quiet); stroke-width: 1.5; } .query polygon { fill: var(--quiet); }
.query .negated path { stroke: var(--bad); stroke-dasharray: 6 4; } .query .negated polygon { fill: var(--bad); }
.query .join path { stroke-dasharray: 1 4; stroke-linecap: round; stroke-width: 2; }
.query .spot rect { fill: var(--paper); stroke: var(--quiet); stroke-width: 1.5; }
.query .entity rect { fill: var(--soft); stroke: var(--edge); } .query .target rect { stroke: var(--main); }
.query .not rect { stroke: var(--bad); } .query .not text { fill: var(--bad); }
.query .target text, .query .and text, .query .or text, .query .not text { font-weight: 700; }
"""
"""Of the picture of a question."""
STYLE: Final = (
    """
:root { color-scheme: light dark; """
    + PALETTE
    + """ }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --quiet: #a5aebd; --paper: #14181f; --edge: #333b48; --soft: #1c222c; --main: #6aa9ee;
    --second: #e6a54a; --good: #5cc486; --bad: #ff8a80;
    --s0: #6aa9ee; --s1: #e6a54a; --s2: #4fc4b5; --s3: #b68be0; --s4: #5d6675; --s5: #ec7a70; --s6: #93c45f;
    --s7: #e48cc4; --s8: #9aa4b5;
    --public: #76808f; --ciphertext: #6aa9ee; --masked: #4fc4b5; --aggregate: #e6a54a; --clear: #ff6b60; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; } h4 { font-size: .95rem; margin: .7rem 0 0; } p { margin: .4rem 0; }
a { color: var(--main); } ul { margin: .4rem 0; padding-left: 1.3rem; }
code { font-size: .9em; overflow-wrap: anywhere; }
code.option, .whole { white-space: nowrap; }
.quiet { color: var(--quiet); margin: .2rem 0 0; }
.warning { border: 2px solid #c62828; border-radius: .5rem; padding: .6rem .8rem; margin: 0 0 1rem; font-weight: 600; }
.verdict { border-left: .4rem solid var(--main); background: var(--soft); border-radius: .25rem; padding: .7rem .9rem;
  margin: 1rem 0; font-size: 1.15rem; font-weight: 600; }
.verdict.bad { border-color: var(--bad); } .verdict.good { border-color: var(--good); }
.missing { color: var(--bad); }
.verdict.fair { border-color: var(--second); }
nav ol { columns: 2 16rem; margin: .4rem 0; padding-left: 1.8rem; } nav a { text-decoration: none; }
nav a:hover, nav a:focus { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
@media screen and (min-width: 52rem) { .cards { grid-template-columns: repeat(var(--in-line), 1fr); } }
.card { border: 1px solid var(--edge); border-radius: .5rem; padding: .6rem .8rem; }
.card b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 1.25rem; }
figure { margin: 0 0 .75rem; min-width: 0; } figcaption { color: var(--quiet); font-size: .9rem; }
svg { width: 100%; height: auto; display: block; }
"""
    + CHARTS
    + """\
.public { background: var(--public); } .ciphertext { background: var(--ciphertext); }
.masked { background: var(--masked); } .aggregate { background: var(--aggregate); } .clear { background: var(--clear); }
.bars { max-width: 42rem; } .narrow { max-width: 32rem; }
.bars dl { display: grid; grid-template-columns: max-content 1fr max-content; gap: .35rem .6rem;
  align-items: center; margin: .3rem 0; font-size: .9rem; }
.bars dt { text-align: right; color: var(--quiet); } .bars dd { margin: 0; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: 1.1rem; min-width: 1px; border-radius: 2px; overflow: hidden; }
.bar i { display: block; height: 100%; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .3rem 0; padding: 0; list-style: none;
  font-size: .85rem; color: var(--quiet); }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .35rem;
  vertical-align: -.05rem; }
.chip { display: inline-block; border-radius: 1rem; padding: .05rem .6rem; font-size: .8rem; font-weight: 600;
  white-space: nowrap; border: 1px solid var(--edge); background: var(--soft); color: var(--ink); }
.chip.high { background: #b3261e; border-color: #b3261e; color: #fff; }
.chip.medium { background: #8f5400; border-color: #8f5400; color: #fff; }
.chip.low { background: #2f5fa8; border-color: #2f5fa8; color: #fff; }
.chip.info { background: #57606e; border-color: #57606e; color: #fff; }
.chip.yes { color: var(--good); border-color: var(--good); } .chip.no { color: var(--bad); border-color: var(--bad); }
.chip.class { border-left-width: .8rem; font-size: .9rem; } .chip.class.of-public { border-left-color: var(--public); }
.chip.class.of-ciphertext { border-left-color: var(--ciphertext); }
.chip.class.of-masked { border-left-color: var(--masked); }
.chip.class.of-aggregate { border-left-color: var(--aggregate); }
.chip.class.of-clear { border-left-color: var(--clear); }
.finding { border: 1px solid var(--edge); border-left: .4rem solid #57606e; border-radius: .4rem; padding: .7rem .9rem;
  margin: .7rem 0; }
.finding.high { border-left-color: #b3261e; } .finding.medium { border-left-color: #b36b00; }
.finding.low { border-left-color: #2f5fa8; } .finding h3 { margin-top: .3rem; }
.finding details, .ledger details { margin-top: .4rem; }
.scroll { overflow-x: auto; background:
  linear-gradient(to left, var(--paper) 1.5rem, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--public), transparent) right / .5rem 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); font-size: .9rem; padding-bottom: .2rem; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.wide th, .wide td:first-child { white-space: normal; } .wide td:first-child { min-width: 8.5rem; }
.wide th, .wide td { padding: .3rem .45rem; vertical-align: bottom; }
.text th, .text td { text-align: left; white-space: normal; vertical-align: top; }
.stack { font-size: .9rem; } .rate { display: flex; flex-wrap: wrap; gap: 0 .5rem; align-items: baseline; }
.rate .score { flex: 1 0 100%; } .rate .quiet { font-size: .85em; margin: 0; white-space: nowrap; }
.ledger th:nth-child(7) { width: 32%; }
.matrix { width: auto; } .matrix th, .matrix td { text-align: center; padding: .2rem .3rem; font-size: .85rem; }
.matrix th:first-child, .matrix td:first-child { text-align: left;
  position: sticky; left: 0; background: var(--paper); }
.matrix .in, .matrix .out { display: inline-block; width: .9rem; height: .9rem; border-radius: 2px;
  vertical-align: middle; border: 1px solid var(--edge); }
.matrix .in { background: var(--main); border-color: var(--main); }
.score { display: block; margin: .15rem 0; position: relative; height: .6rem; min-width: 5rem;
  background: var(--edge); border-radius: 2px; }
.score i { position: absolute; left: 0; top: 0; height: 100%; border-radius: 2px; background: var(--main); }
.score i.won { background: var(--bad); }
.score b { position: absolute; top: -.15rem; height: .9rem; width: 2px; background: var(--ink); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr)); gap: 1.25rem;
  max-width: 46rem; }
.pictures img { width: 100%; height: auto; display: block; image-rendering: pixelated; border: 1px solid var(--edge); }
.pictures figure { max-width: 22rem; } .pictures svg { margin-top: .5rem; }
.question { background: var(--soft); border-radius: .4rem; padding: .5rem .8rem; margin: .5rem 0;
  overflow-wrap: anywhere; white-space: pre-wrap; }
.answers { width: auto; } .answers th:nth-child(2), .answers td:nth-child(2) { text-align: left; }
.answers td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.answers .score { min-width: 8rem; } .question code { font-size: .95rem; }
.query { margin: .6rem 0; }
"""
    + QUERIES
    + """\
.steps { list-style: none; margin: .6rem 0; padding: 0; counter-reset: step; }
.steps > li { counter-increment: step; position: relative; padding: 0 0 1rem 2.4rem; }
.steps > li::before { content: counter(step); position: absolute; left: 0; top: 0; width: 1.6rem; height: 1.6rem;
  border-radius: 50%; background: var(--main); color: var(--paper); font-weight: 600; font-size: .85rem;
  line-height: 1.6rem; text-align: center; }
.steps > li:not(:last-child)::after { content: ""; position: absolute; left: .75rem; top: 1.9rem; bottom: .3rem;
  border-left: 2px solid var(--edge); }
.parties { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(14rem, 100%), 1fr)); gap: .4rem 1.2rem;
  margin: .2rem 0 0; font-size: .9rem; }
.parties dt { color: var(--quiet); } .parties dd { margin: 0; }
details { margin-top: 1.5rem; } section details { margin-top: .6rem; } summary { cursor: pointer; }
pre { overflow-x: auto; font-size: .85rem; }
@media screen and (max-width: 44rem) {
  .tick { font-size: 17px; }
  .answers { font-size: .85rem; } .answers th, .answers td { padding: .25rem .35rem; }
  .answers .score { min-width: 4rem; }
  .scroll th:first-child, .scroll td:first-child { position: sticky; left: 0; background: var(--paper); }
  .scroll table { border-collapse: separate; border-spacing: 0; }
  .stack, .stack tbody, .stack tr, .stack td { display: block; width: 100%; }
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stack caption { display: block; }
  .stack tr { border: 1px solid var(--edge); border-radius: .4rem; padding: .3rem .6rem; margin: .5rem 0; }
  .stack td { border: 0; padding: .1rem 0; display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: .5rem; }
  .stack td:first-child { display: block; font-weight: 600; } .stack td:first-child::before { content: none; }
  .stack td > .chip { justify-self: start; }
  .stack td:empty { display: none; }
  .stack td::before { content: attr(data-label); color: var(--quiet); }
}
@media print {
  :root { color-scheme: light; --ink: #000; --quiet: #444; --paper: #fff; --edge: #bbb; --soft: #f3f5f9;
    --main: #2563a8; --good: #1c7a3f; --bad: #b3261e; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 10.5pt; max-width: none; padding: 0; } h2, h3, summary { break-after: avoid; }
  .card, .finding, figure, tr { break-inside: avoid; } .scroll { overflow: visible; }
  .stack { font-size: 8.5pt; } .stack th, .stack td { padding: .15rem .35rem; }
  pre { white-space: pre-wrap; } nav { display: none; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""
)
