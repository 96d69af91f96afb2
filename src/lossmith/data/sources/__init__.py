"""Where data comes from: files, folders, arrays and well-known sets."""
