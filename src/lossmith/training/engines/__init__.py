"""What runs the tasks of a study: processes of this machine, or a cluster."""
