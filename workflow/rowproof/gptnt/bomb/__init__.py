"""One bomb as a deterministic machine on a virtual clock: no graphics, no threads, no floating point in its state."""
