"""What may be asked, and what is refused."""
