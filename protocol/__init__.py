"""Values, codecs and state machines of Ravel: pure, without I/O, clock or randomness of their own."""
