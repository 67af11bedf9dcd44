"""Servers that cheat, each in a whole federation of real clients: what they get, who stops them, what an audit says."""
