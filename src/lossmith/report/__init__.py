"""Pages and tables for people (extra ``report``)."""
