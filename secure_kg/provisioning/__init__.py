"""Who may take part in a federation between organisations, and the keys of each site.

Parties:     a coordinator, a server (by default the coordinator's machine) and sites, each with an identity of its own.
Adversary:   whoever carries files and connections between them; sites that are not members, or no longer; members that
             claim another member's number; other users of a site's machine.
Reveals:     names, numbers, public keys, settings and the server's address stand in federation.toml in clear.
Assumes:     each site compares the coordinator's fingerprint once over another channel; Ed25519, SHA-256, TLS 1.3;
             against an active server also the fingerprints of all members, for the coordinator may be that server.
Not covered: a coordinator that leaves sites out or hands out two rosters under two version numbers; whoever reads a
             site's private files is that site until it is revoked.

    site_folder   a site's private files: identity, TLS key and certificate, and its record of what it has accepted
    request       what a site passes on: its name and identity, signed by it
    roster        federation.toml: members, server, settings; signed by the coordinator
    record        a site's own record: whose roster it accepts, and no older one than it has seen
    tls           contexts for the server and for a site
    membership    whose certificate it is, asked at every connection
    signing       credentials against an active server
    coordinator   versions of federation.toml: approve, revoke, rotate
"""
