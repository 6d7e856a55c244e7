"""How many examples a property gets that needs more or fewer than others."""

import os
from typing import Any

from hypothesis import settings

# Of a property that does not say how many, in the profile for which the numbers of the others are meant.
USUAL = 60


def examples(count: int, **options: Any) -> settings:
    """Give a property so many examples, and as many fewer as others where the profile gives fewer than usual."""
    return settings(max_examples=-(-count * settings.default.max_examples // USUAL), **options)


# Of a property whose every example opens a store; a server needs longer for one, and checks the same rules again.
opens_stores = examples(8 if os.environ.get("REVERIE_TEST_STORE") else 20)
