"""Questions as people write them: the toolkit's own language, and a part of SPARQL.

    ?drug : treats(?drug, ?d) & associated(?d, "BRCA1")

Modules in dependency order; imports only point up this list. None of them loads a compiler or a model:

    places.py      places in a text, and errors that name them
    formula.py     a question as it is written: atoms over variables, and, or, not
    scopes.py      variables that belong to one negated part alone
    trees.py       a formula as a query: variables become the nodes of a tree
    tokens.py      words and marks of a text
    parser.py      tokens to formulas
    writing.py     a query as text, the inverse of reading
    sparql.py      SELECT queries, parsed by rdflib, as formulas
    reading.py     the front door: a text or a file to queries

Texts come from anywhere, so everything is bounded: bytes, nesting, the work of a translation. A text that is refused is
refused in one line with its line and column. Errors never quote a text: questions are private, as triples are.
"""
