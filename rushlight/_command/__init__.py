"""What serves the command line: the alias `torch`, its stubs, and the program that runs models."""
