"""Imported before numpy, it makes numpy and scipy compute on one core, as the suggester's process does.

Their threads would wait for each other on a busy machine. The environment of programs that tests start stays
as it is.
"""

import os
from importlib import import_module
from unittest.mock import patch

from trainshed.suggest.worker import ONE_CORE

with patch.dict(os.environ, ONE_CORE):
    import_module("numpy")
    import_module("scipy.linalg")
