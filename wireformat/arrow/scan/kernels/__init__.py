"""One kernel a format: the compiled functions that know its bytes."""
