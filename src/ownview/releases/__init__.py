"""What has been released of whom under a budget, and what that leaves."""
