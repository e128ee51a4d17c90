"""One module for each package that trains, in the words of its users."""
