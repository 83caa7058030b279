"""Models that may be quantised: the parts that are plain layers until then. Nothing here quantises."""
