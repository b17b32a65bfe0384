"""Wrong, hostile and half-finished input. Arguments: parts of the names of the cases to run."""

import sys
import traceback

from cases import CASES

for name, function in CASES:
    if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
        continue
    print(f"case {name}", flush=True)
    try:
        function()
        print(f"ok {name}", flush=True)
    except Exception as error:  # a failing case must not hide the others
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"fail {name} # {reason}", flush=True)
print("done", flush=True)
