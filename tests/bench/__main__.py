"""`make bench`: run every benchmark, or those named, print their tables and write benchmarks.json."""

import argparse
import json
from pathlib import Path

from tests.bench import caches, data, growth, guard, metrics, networks, overhead, pictures, steps, tracking, training

BENCHMARKS = {
    "overhead": overhead.run,
    "training": training.run,
    "networks": networks.run,
    "tracking": tracking.run,
    "guard": guard.run,
    "regularizers": steps.run,
    "scaling": steps.run_scaling,
    "growth": growth.run,
    "data": data.run,
    "caches": caches.run,
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
    """Run the benchmarks; the others' last results stay in benchmarks.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="Benchmarks to run; all by default.")
    names = parser.parse_args().names or list(BENCHMARKS)
    file = Path("benchmarks.json")
    results = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        results[name] = BENCHMARKS[name]()
        print(f"\n{name}\n{table(results[name])}", flush=True)
        file.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
