"""Files of triples in any supported format, read in chunks.

Modules in dependency order; imports only point up this list, and nothing here imports the rest of `secure_kg.data`:

    interface.py   chunks of named triples, what was left out, the rules of reading
    streams.py     plain, gzip and zstd files as bounded streams of bytes
    tsv.py         head<TAB>relation<TAB>tail
    columns.py     which columns of a table hold head, relation and tail
    delimited.py   CSV, Neo4j's exports among them
    apoc_json.py   Neo4j's export as lines of JSON
    parquet.py     Parquet
    xml_guard.py   what RDF/XML may not do to a parser
    rdf.py         N-Triples, Turtle, N-Quads, TriG, RDF/XML, JSON-LD
    registry.py    a file's name -> its reader
    encoding.py    files -> ids, chunk by chunk

No reader opens a connection: contexts, imports and entities that lie elsewhere are refused.
"""
