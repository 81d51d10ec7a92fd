"""The formats: the declaration of each, and how its records become events and back."""
