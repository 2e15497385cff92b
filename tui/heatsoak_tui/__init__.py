"""The screen: reads sessions, draws them, asks the recorder; never owns a number."""
