"""Settings that programs may set."""

# progress is not shown: these have no effect
disable_progress = True
verbose_progress = False
