"""What commands print: results, answers and the catalogue, in colour where a terminal has it."""
