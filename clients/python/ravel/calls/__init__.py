"""One method for each endpoint. Start with `people`. Made from the table of endpoints by `make reference`."""
