"""What the documentation site is made with: `python -m tools.site`."""
