"""What the programs that leaks.py repeats are made with: their table, a network, work that has to fail."""

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__.replace("_", " ")] = make
    return make


def network(rl, width=4):
    nn = rl.nn
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))


def fails(work, *kinds):
    """Runs what has to raise."""
    try:
        work()
    except Exception as error:
        if kinds and not isinstance(error, kinds):
            raise
        return
    raise AssertionError("no error")
