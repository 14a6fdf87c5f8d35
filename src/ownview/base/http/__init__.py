"""What every HTTP server of the package has: a port that it listens at, and limits before a request is believed."""
