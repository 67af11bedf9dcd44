"""Limits of every audit, said in every report, so that a clean one is not read as more than it is."""

from typing import Final

from secure_kg.audit.records.parts import Note

STANDING_NOTES: Final[tuple[Note, ...]] = (
    Note(
        title="A sum says something about what is in it",
        text=(
            "Secure aggregation hides single contributions, not what follows from their sum. Whoever reads mean rows, "
            "the server under secagg and every client under all protocols, can ask the model which triples it finds "
            "likely (membership inference), and of a row of two holders each knows the other's from the mean and its "
            "own. Differential privacy bounds what such questions tell: noise in training or in the sum. This run has "
            "none of it."
        ),
    ),
    Note(
        title="An audit sees the server's wire, not its memory, its files or its friends",
        text=(
            "The transcript is what passed this server's end. A server that colludes with clients, reads their "
            "machines, or keeps a second record is not visible in it. Receipts of clients show that the record is "
            "complete as far as these clients are concerned; without any, whole sessions can be missing from it."
        ),
    ),
    Note(
        title="Statistics find faults, they prove nothing",
        text=(
            "Masked uploads that pass for uniform are not thereby proven to be; that they are follows from the "
            "protocol and its assumptions (docs/real-or-ideal.md). The tests are there to catch implementations that "
            "do not do what the protocol says."
        ),
    ),
)
