"""`python -m rushlight.distributed.launch`: the launcher's former name and options.

Programs get `--local-rank` as an argument, unless `--use-env` says that they read LOCAL_RANK.
"""

import warnings

from rushlight.distributed.run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args=None):
    """The launcher's options, and `--use-env`."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="give programs LOCAL_RANK, and no argument"
    )
    return parser.parse_args(args)


def launch(args):
    """Start the processes that parsed options describe."""
    if not args.no_python and not args.use_env:
        args.pass_local_rank = True
    run(args)


def main(args=None):
    """Start the processes that a command line describes."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.",
        FutureWarning,
        2,
    )
    launch(parse_args(args))


if __name__ == "__main__":
    main()
