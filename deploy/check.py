"""Say whether a cluster answers, and whether its workers have our versions.

    python deploy/check.py tcp://127.0.0.1:8786
    python deploy/check.py tls://10.0.0.7:8786 certificates

The first argument is an address, a scheduler file or a YAML file; the second a folder
with `ca.pem`, `cert.pem` and `key.pem`.
"""

import sys

from dsel.cluster import connect


def main() -> None:
    """Print one line about the workers, or end with one about what is wrong."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        with connect(sys.argv[1], tls=(sys.argv[2:] or [None])[0]) as client:
            workers = client.nthreads()
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
    print(
        f"{len(workers)} workers with {sum(workers.values())} threads, versions agree"
    )


if __name__ == "__main__":
    main()
