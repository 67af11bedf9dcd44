"""Local training of one client. `config` is free of torch; `trainer` puts the parts together."""
