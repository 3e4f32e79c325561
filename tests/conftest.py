"""Makes the `benchmarks` package importable, which is run from the root and not installed."""

import importlib
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[1])

sys.path.insert(0, ROOT)
importlib.import_module("benchmarks")
sys.path.remove(ROOT)  # else the source folders would be importable under second names
