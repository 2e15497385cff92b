"""One file is one session: written by the recorder, followed by screens, read by everyone."""
