"""The code of `./dev`, which runs before .venv exists: standard library only.

main.py         the command line: the list of commands, help, what ends in one line
commands.py     the commands themselves, in the order in which `./dev` lists them
environment.py  .venv: made, mended, and the packages in it
machine.py      compiler, headers, jobs, memory, disk: what the machine has and what it lacks
build.py        configure and build one build folder
ninja.py        reads what ninja prints and what it has recorded
progress.py     the progress line
process.py      runs programs: in the foreground, or watched behind the progress line
problems.py     failures whose cause is known, said in one line
cross.py        another processor's system, compiler and emulator, for `./dev cross`
cross_wheel.py  a wheel of such a build
sanitized_server.py  rushlight-serve under sanitizers, for `./dev fuzz server`
portability.py  what compilers for other systems say of the sources
times.py        edit-to-test times, and units that have become slower (unit_costs.txt)
"""
