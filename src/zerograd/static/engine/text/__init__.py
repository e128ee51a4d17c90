"""What is seen in the text of a file alone: its words, classes and stores."""
