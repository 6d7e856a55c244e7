"""What Reverie can do beyond storing and recalling: one folder per feature, with its declaration."""
