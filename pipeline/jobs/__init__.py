"""What happens while nobody waits; one file a job."""
