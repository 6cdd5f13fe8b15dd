"""One method for each endpoint. Start with `repos`. Made from the table of endpoints by `make reference`."""
