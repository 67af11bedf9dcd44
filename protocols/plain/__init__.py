"""The plain twins: the same conversations without cryptography, so that cost and exactness are measured by one switch.

Parties:     n clients, 1 server.
Adversary:   none. The server reads every client's names and values.
Reveals:     everything that is sent, to the server.
Not covered: any privacy. Use them for measurements, never for data that may not be shown.
"""
