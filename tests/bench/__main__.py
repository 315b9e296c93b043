"""`make bench`: run every benchmark, print its table and write benchmarks.json."""

import json
from pathlib import Path

from tests.bench import data, guard, metrics, pictures, training

BENCHMARKS = {
    "training": training.run,
    "guard": guard.run,
    "data": data.run,
    "metrics": metrics.run,
    "pictures": pictures.run,
}


def table(rows: list[dict[str, object]]) -> str:
    """Rows as a table for reading."""
    columns = list(rows[0])
    lines = [columns, *[[str(row[column]) for column in columns] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def main() -> None:
    """Run all benchmarks."""
    results = {}
    for name, run in BENCHMARKS.items():
        results[name] = run()
        print(f"\n{name}\n{table(results[name])}", flush=True)
    Path("benchmarks.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
