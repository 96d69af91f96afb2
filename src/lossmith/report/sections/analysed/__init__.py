"""What an analysis found out: sections of studies that were analysed."""
