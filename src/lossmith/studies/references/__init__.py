"""Classical models, tuned and of bounded cost, beside which losses are judged."""
