"""Many runs as one batched model: layers, losses, optimisers with a leading dimension of runs."""
