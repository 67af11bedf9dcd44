"""`audit.html`: what the server observed, for people who answer for data."""

from html import escape
from typing import Any


def audit_page(record: dict[str, Any]) -> str:
    """The page for `audit.json`."""
    findings = "".join(
        f"<h3>{escape(one['severity'])}: {escape(one['title'])}</h3><p>{escape(one['explanation'])}</p>"
        for one in record["findings"]
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>Audit of {escape(record['run'])}</title></head><body>{findings}</body></html>\n"
    )
