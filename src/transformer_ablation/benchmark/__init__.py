"""What an update, a search and their programs cost on the machine at hand."""
