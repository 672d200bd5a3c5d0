"""Players that are language models: what they are told, what they are sent, and how their answers are read."""
