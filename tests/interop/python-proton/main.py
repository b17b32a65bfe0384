"""Proton's Python binding against the broker. Arguments: parts of the names of the cases to run."""

import messages  # noqa: F401  (each module registers its cases)
import links  # noqa: F401
import connections  # noqa: F401
import management  # noqa: F401
import transactions  # noqa: F401
from harness import run_all

run_all()
