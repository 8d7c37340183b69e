"""A little serving package."""
