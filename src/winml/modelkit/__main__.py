"""`python -m winml.modelkit`."""

from winml.modelkit.cli.main import main

main()
