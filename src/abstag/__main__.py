"""``python -m abstag``."""

import sys

from abstag.cli import main

sys.exit(main())
