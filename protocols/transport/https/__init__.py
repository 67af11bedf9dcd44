"""Frames between organisations: one outbound connection per client, TLS 1.3 both ways, over WebSockets or long polls.

`server.HttpsServer` and `client.HttpsClientTransport` are what a host uses. `outbox`, `inbox` and `link` are the state
of a link without any connection; a `connection` carries it for a while; a `channel` is one way of connecting.
"""
