"""Where rows come from: descriptions of files and tables that can be split, pruned, shipped and read."""
