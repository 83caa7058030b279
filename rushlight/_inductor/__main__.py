"""`python -m rushlight._inductor`: where torch.compile keeps files, how many, and how to be rid of them."""

import argparse
import sys

from rushlight._inductor import _decision_cache


def main(arguments):
    parser = argparse.ArgumentParser("python -m rushlight._inductor", description=__doc__)
    parser.add_argument(
        "--clear", action="store_true", help="delete them; programs then try graphs out again"
    )
    if parser.parse_args(arguments).clear:
        print(f"deleted {_decision_cache.clear()} files of {_decision_cache.folder()}")
    else:
        print(f"{len(_decision_cache.files())} files in {_decision_cache.folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
