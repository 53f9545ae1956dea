"""What commands do: imported when a command runs."""
