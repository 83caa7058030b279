"""Prints where each operator is computed for CUDA tensors: ``python tools/device_table.py [--missing]``."""

import argparse
from collections import Counter, defaultdict


def state(record):
    """composite, view, device or cpu."""
    if record["family"] in ("composite", "view"):
        return record["family"]
    return "device" if record["on_device"] else "cpu"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", action="store_true", help="only the operators that run on the CPU")
    options = parser.parse_args()
    import rushlight

    families = defaultdict(lambda: defaultdict(set))
    for record in rushlight._C._operator_records():
        families[record["family"]][state(record)].add(record["name"])
    total = Counter(
        {s: sum(len(f[s]) for f in families.values()) for s in ("device", "view", "composite", "cpu")}
    )
    print("| state | operators |\n|---|---|")
    print("\n".join(f"| {name} | {count} |" for name, count in total.items()))
    for family, states in families.items():
        for name in ("cpu",) if options.missing else ("device", "cpu"):
            if states[name]:
                print(f"\n{family}, {name}: {' '.join(sorted(states[name]))}")


if __name__ == "__main__":
    main()
