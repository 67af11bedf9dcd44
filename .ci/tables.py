"""Write the tables of the documents again that are rendered from the protocols' disclosures.

Usage: python .ci/tables.py (`make tables`)
"""

from pathlib import Path

from secure_kg.report.disclosure_tables import DOCUMENTS, all_rendered

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    for name, tables in DOCUMENTS.items():
        path = ROOT / name
        path.write_text(all_rendered(path.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
