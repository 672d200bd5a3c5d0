"""Static evaluations: one question, one answer, no game. Data are made here, from the simulator and the manual."""
