"""Templates for things that contributors add. Each one works, but is refused until its placeholders are filled in."""
