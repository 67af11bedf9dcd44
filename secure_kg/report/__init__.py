"""A run as a page for people: one self-contained HTML file, no scripts, no network."""
