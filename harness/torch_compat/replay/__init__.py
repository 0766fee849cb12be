"""Planning, producing, observing and recording: everything that needs a running reader."""
