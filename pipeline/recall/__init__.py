"""From a query to ranked, checked, explained hits."""
