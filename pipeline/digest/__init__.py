"""The stages that workers run on a written memory; one file a stage."""
