"""What `wireformat inspect` prints and writes, and the guess of a format."""
