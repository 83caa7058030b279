"""How a process of a job tells its launcher what went wrong."""
