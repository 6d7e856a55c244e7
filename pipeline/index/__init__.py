"""What recall reads; every index here can be deleted and rebuilt from the store."""
