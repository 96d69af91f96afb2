"""The little language that losses, noise, schedules and objectives are written in: reading, printing, ranges, hints."""
