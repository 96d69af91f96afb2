"""Pretrained encoders of texts, from folders on disk (extra ``encoders``)."""
