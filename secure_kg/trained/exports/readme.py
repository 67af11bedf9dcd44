"""Texts of the READMEs of exports: what the files are, and how another program reads them."""

from typing import Final

from secure_kg.trained.exports.for_pykeen import EVALUATE


def heading(client: int, name: str) -> str:
    """What every export begins with."""
    return f"""\
# Client {client}'s trained model ({name})

Written by `secure-kg export`. The files hold the client's names and the rows it has learned, and for PyKEEN and Neo4j
its triples. They are as confidential as its graph. Nothing in them is run when they are read.

"""


def pykeen(lines: str) -> str:
    return f"""\
`model.safetensors` has the rows under the names of PyKEEN's state, `train.tsv`, `valid.tsv` and `test.tsv` the triples,
`pykeen.json` settings and ids. Load them in this folder:

```python
{lines}```

Filtered test MRR, realistic rank, tail side:

```python
{EVALUATE}```

PyKEEN drops repeated triples of a part. Its scores of distance models have no margin; ranks are the same.
"""


SAFETENSORS: Final = """\
`model.safetensors` has the rows, `entities.tsv` and `relations.tsv` have lines `id<TAB>name` without quotes (id 0 is
the first row), `model.json` says how a score is computed and how complex rows are laid out.

```python
from safetensors.numpy import load_file
rows = load_file("model.safetensors")
names = [line.rstrip("\\n").split("\\t", 1)[1] for line in open("entities.tsv", encoding="utf-8", newline="\\n")]
```
"""

WORD2VEC: Final = """\
Text in the format of word2vec: the number of rows and their width, then a token and its row in each line. Blanks,
characters that cannot be seen and `%` in names are written as in URLs; `urllib.parse.unquote` gives a name back. gensim
reads a file with `KeyedVectors.load_word2vec_format("entities.word2vec.txt")`. Complex rows are real parts, then
imaginary parts. Relations of RotatE are phases, those of RESCAL matrices row by row.
"""


def neo4j(width: int) -> str:
    return f"""\
`nodes.csv` has a node for each entity, with its row as `vector`; `relationships.csv` the client's triples, with the
part of each. Into a new database:

```
neo4j-admin database import full --nodes=Entity=nodes.csv --relationships=relationships.csv neo4j
```

Into a database that runs, from its import folder (nodes only):

```
LOAD CSV WITH HEADERS FROM 'file:///nodes.csv' AS row
MERGE (e:Entity {{entityId: row.`entityId:ID`}})
SET e.name = row.name, e.vector = [x IN split(row.`vector:float[]`, ';') | toFloat(x)];
```

An index for nearest neighbours:

```
CREATE VECTOR INDEX entities FOR (e:Entity) ON e.vector
OPTIONS {{indexConfig: {{`vector.dimensions`: {width}, `vector.similarity_function`: 'euclidean'}}}};
```

Names are in quotes, and a quote inside is doubled (RFC 4180), as `neo4j-admin` reads it. `LOAD CSV` takes a backslash
for a mark of its own unless its setting `legacy_quote_escaping` is false.
"""
