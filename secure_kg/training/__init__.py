"""Local training of one client. `config` and `seeds` are free of torch; `trainer` puts the parts together."""
