"""A place's own side: its folder, its users' data, its floor, what it has sent."""
