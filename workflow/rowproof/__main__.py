"""``python -m rowproof``."""

import sys

from rowproof.cli import main

sys.exit(main())
