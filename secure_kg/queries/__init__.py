"""Logical queries over knowledge graphs: their form, their exact answers, and how they are drawn.

Modules in dependency order; imports only point up this list, and none of them imports torch:

    form.py           the general form: anchors, projections, intersections, unions, negations
    normal.py         canonical order, canonical text, disjunctive normal form
    structures.py     the named types of the field, as queries over the columns of a row
    edges.py          a graph with inverse edges as compressed rows; its stages train, valid, test
    set_programs.py   a structure as steps over a stack of sets
    traversal.py      the compiled loop that runs them
    answers.py        exact answers of one query or of tables of them; easy and hard answers
    draw_programs.py  a structure as steps from an answer back to the anchors
    drawing.py        the compiled loop that runs them
    holders.py        who holds a query's relations: in-graph and cross-graph
    sampling.py       drawn queries, for training and for evaluation
    clients.py        clients' graphs over common ids
    published.py      the query sets of Query2box and BetaE
    naming.py         names to ids, and the nearest names of those that are unknown

`secure_kg.queries.language` reads and writes queries as people do.
"""
