"""Has no kernel of its own: it runs the text, or the bytecode, of another candidate that lies beside it or is shipped.

Mechanism: a judge that imports a candidate where it lies lets it read all that lies there; the copy is right, fast and a
  kernel of somebody's. Builder and player see of the folder what is no other candidate's, and of the harness's checkout
  the package alone.
Expected: build_failed/import_error
Fools: nothing
Device: any
"""

import importlib.util
import sys
from pathlib import Path

here = Path(__file__).resolve()
folders = [here.parent, *(Path(place, "candidates", "tril_matmul") for place in (".", *here.parents, *sys.path))]
rivals = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.name != here.name]
rivals = [path for path in rivals if "class ModelNew" in path.read_text(encoding="utf-8")]
rivals += [path for folder in folders for path in folder.glob("__pycache__/*.pyc") if not path.name.startswith(here.stem)]
if not rivals:
    raise LookupError("there is no rival whose work could be taken")
spec = importlib.util.spec_from_file_location("rival", rivals[0])
rival = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rival)
ModelNew = rival.ModelNew
