"""The command `rushlight-serve` of the wheel: gives way to the program that comes with the package."""

import os
import sys


def main():
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.path.join(package, "bin", "rushlight-serve")
    if not os.path.exists(program):
        sys.exit(
            "rushlight-serve: this Rushlight was built without it: it needs Boost's headers (libboost-dev)"
        )
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
