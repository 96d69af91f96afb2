"""What happened on data sets that were studied: the exported map of losses, and which of it speaks about a task."""
