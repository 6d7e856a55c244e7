"""The person's orders to the memory: remember, forget, do not save."""
