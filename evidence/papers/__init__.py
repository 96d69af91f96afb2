"""Tables of papers on real data: ``python -m evidence.papers`` lists them, ``python -m evidence.papers NAME`` makes one."""
