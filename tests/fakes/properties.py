"""How many examples a property gets whose examples cost more than a calculation."""

import os

from hypothesis import settings

# Of a property whose every example opens a store; a server needs longer for one, and checks the same rules again.
opens_stores = settings(max_examples=8 if os.environ.get("REVERIE_TEST_STORE") else 20)
