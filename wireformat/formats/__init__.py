"""The formats: each one's declaration, and how its records become events and back."""
