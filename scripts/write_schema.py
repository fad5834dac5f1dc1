"""Write docs/fingerprint.schema.json, the JSON Schema of the file that ``overhead run`` leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from overhead import results  # noqa: E402

if __name__ == "__main__":
    path = ROOT / "docs" / "fingerprint.schema.json"
    path.write_text(json.dumps(results.schema(), indent=1) + "\n", "utf-8")
    print(path)
