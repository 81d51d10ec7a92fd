"""Who reads what: the compiled scan or the declaration, a second look, threads, checks of order."""
