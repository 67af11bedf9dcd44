"""Names of the nodes of an export of apoc: a property's value where the user has chosen one, else a blank node's.

A node must keep its name, or it would be two entities. So a name that comes after the node was used without it is
refused, and so is a second name.
"""

from pathlib import Path

from secure_kg.data.readers.interface import Chunk, FileRules, LeftOut, refuse


class NodeNames:
    """Names of a file's nodes by the database's own ids. `chosen`: whether a property names them."""

    def __init__(self, path: Path, rules: FileRules, chosen: bool) -> None:
        self._path, self._rules, self._chosen = path, rules, chosen
        self._blank, self._named = rules.blank_nodes(), dict[str, str]()
        self._counted = 0

    def name(self, own: str, value: str, line: int) -> None:
        """Give the node with the id `own` its name."""
        if own in self._blank:
            refuse(self._path, "a node gets its name after a relationship has used it; put nodes first", line)
        (name,) = self._rules.own_names([value])
        if self._named.setdefault(own, name) != name:
            refuse(self._path, "a node gets a second name", line)

    def add(self, chunk: Chunk, ids: tuple[str, str, str]) -> None:
        """Add a relationship between two nodes by their ids."""
        head, relation, tail = ids
        chunk.heads.append(self._named[head] if head in self._named else self._blank[head])
        chunk.relations.extend(self._rules.own_names([relation]))
        chunk.tails.append(self._named[tail] if tail in self._named else self._blank[tail])

    def left_out(self, rows: int) -> LeftOut:
        """Counts of a chunk with so many rows of nodes."""
        unnamed = len(self._blank) - self._counted if self._chosen else 0
        self._counted = len(self._blank)
        return LeftOut(node_rows=rows, unnamed_nodes=unnamed)
