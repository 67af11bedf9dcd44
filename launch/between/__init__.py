"""What the commands between organisations share: fingerprints compared by people, tables, settings, the preflight."""
