"""Row changes straight to bytes, beside the declarations: what the rows of a table share is made once."""
