"""The scripts of the papers import each other by name, as they do when they are run."""

import sys
from pathlib import Path

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
sys.path.append(str(PAPERS))
