"""What a data set on the disk holds, and what is wrong with it."""
