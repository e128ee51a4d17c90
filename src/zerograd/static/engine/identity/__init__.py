"""Who is who: the values of names, the things that a program makes, and the conditions it asks."""
