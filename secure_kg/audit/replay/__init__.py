"""The server's own program once more, over the messages that were recorded: what it would have said is what it said.

A server is a program without secrets. Given what arrives, it decides by itself only the name of a session, how it deals
out the positions of a union, and for how long it waits. So an auditor lets the program run over a record. What the
record has as received, the program receives; what the program sends must be what the record has as sent. Where the
record goes on and the program still waits, the server has waited long enough, and those that it waited for are
dropouts. Where the record lacks a message that the program sends, the client could not be reached, and is a dropout.
Whatever cannot be explained in this way was said by another program.

This is the check that finds cheats nobody has thought of. Checks with names of their own (`secure_kg.audit.checks`) say
what a cheat is good for.

    record      events of a transcript, with a look ahead
    wire        the server's end of the wire, as it was
    kept        what a server keeps between two sessions, at the moments at which it may have been ended
    again       the program over all sessions of a run
"""
