"""Who this process is in a job that Slurm or mpirun started, by the variables that they set."""

import os
import re
import zlib

_SYSTEMS = (  # what is set: rank, number of processes, local rank, name of the job, local number of processes
    ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID", ""),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMIX_NAMESPACE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_FD", "MPI_LOCALNRANKS"),
)
_BATCH_STEPS = 0xFFFFFFF0  # from here on Slurm's own, such as a batch script


def first_host(nodes):
    """The first host of a Slurm list such as "gpu[03-05,9],login1"."""
    match = re.match(r"([^,\[]+)(?:\[([^\],-]+)[^\]]*\])?", nodes)
    if match is None:
        raise ValueError(f"not a list of hosts: {nodes!r}")
    return match[1] + (match[2] or "")


def from_job():
    """{"rank", "world_size", "local_rank", "master_addr", "master_port"} as far as they are known."""
    environment = os.environ
    for mark, rank, size, local, job, local_size in _SYSTEMS:
        if mark not in environment or rank not in environment or size not in environment:
            continue
        if mark == "SLURM_STEP_ID" and int(environment[mark]) >= _BATCH_STEPS:
            continue
        found = {"rank": environment[rank], "world_size": environment[size]}
        if local in environment:
            found["local_rank"] = environment[local]
        # All processes of a job find the same port, those of two jobs on a host hardly ever.
        name = f"{environment.get(job, '')}.{environment.get('SLURM_STEP_ID', '')}"
        found["master_port"] = str(20000 + zlib.crc32(name.encode()) % 12000)
        nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
        if mark == "SLURM_STEP_ID" and nodes:
            found["master_addr"] = first_host(nodes)
        elif environment.get(local_size, environment[size]) == environment[size]:
            found["master_addr"] = "127.0.0.1"
        return found
    return {}
