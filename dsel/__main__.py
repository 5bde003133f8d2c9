"""``python -m dsel`` is ``dsel``."""

from dsel.cli import main

if __name__ == "__main__":
    main()
