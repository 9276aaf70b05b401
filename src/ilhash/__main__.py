"""``python -m ilhash`` is the command line."""

from ilhash.cli import main

if __name__ == "__main__":
    main()
