"""What the tests themselves stand on: how fast the machine is, daemons in processes, and the rules on time."""
