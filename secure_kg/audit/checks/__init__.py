"""The checks of an audit, one idea to a module. Each watches a transcript go by and says at the end what it saw."""
