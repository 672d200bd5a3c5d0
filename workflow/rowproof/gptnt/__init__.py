"""The bomb-defusal benchmark family: one player sees and operates a bomb, another one reads the manual."""
