"""The fields that construct lacks."""
