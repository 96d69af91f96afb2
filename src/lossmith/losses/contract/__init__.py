"""What every loss keeps of ``torch.nn.CrossEntropyLoss``, and how losses are made of other losses."""
