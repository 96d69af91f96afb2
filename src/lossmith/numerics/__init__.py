"""The only home of log/exp tricks, root finding and kernels. Nothing here knows about targets' contracts or modules."""
