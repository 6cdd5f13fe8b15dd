"""Types of answers. Start with `values`. Made from the table of endpoints by `make reference`."""
