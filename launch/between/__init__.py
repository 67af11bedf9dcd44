"""What the commands between organisations share: fingerprints that people compare, tables, the preflight."""
