from ._timeline import main

main()
