"""Typed records of the JSON files of a run: `summary.json`, `result.json`, `federation.json(l)`, `metrics.jsonl`.

Every record reads files of earlier versions, and says in one line why a file is none of its kind (`record.Record`).
"""
