"""Prints where each operator is computed for CUDA tensors: ``python tools/device_table.py [--missing]``."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from reference import devices  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", action="store_true", help="only the operators that run on the CPU")
    options = parser.parse_args()
    import rushlight

    records = rushlight._C._operator_records()
    if not options.missing:
        print(devices.page(records), end="")
        return
    for family, names in sorted(devices.states(records)["cpu"].items()):
        print(f"{family}: {' '.join(sorted(names))}")


if __name__ == "__main__":
    main()
