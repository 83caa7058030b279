"""Fails if objects compiled for an instruction set hold code that others could call or that runs at start.

The linker keeps one copy of an inline function. If that is the copy compiled for AVX2, a processor without
AVX2 dies in code that never asked for it.

usage: check_isa_objects.py NM ISA OBJECT...
"""

import subprocess
import sys

# NEON's code runs on every ARM64 processor, but fuses multiplications and additions. What has none may be
# shared.
HARMLESS = {"neon": {"rushlight::Half::from_float(float)", "rushlight::Half::to_float(unsigned short)"}}


def findings(nm, isa, objects):
    listing = subprocess.run(
        [nm, "--demangle", "--defined-only", "--print-file-name", *objects],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in listing.stdout.splitlines():
        file, _, rest = line.partition(".o:")
        _, _, symbol = rest.partition(" ")
        kind, _, name = symbol.partition(" ")
        shared = kind == "W" and f"::{isa}::" not in name and name not in HARMLESS.get(isa, ())
        if shared or "_GLOBAL__sub_I" in name:
            yield f"{file.rpartition('/')[2]}: {'shared function' if shared else 'static initializer'} {name}"


def main(nm, isa, *objects):
    found = sorted(set(findings(nm, isa, objects)))
    if found:
        print(f"objects compiled for {isa} must hold no code outside namespace {isa}:", *found, sep="\n  ")
        print("make it static, move it into the namespace RL_ISA, or compile it elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
