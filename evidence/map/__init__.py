"""The map of losses: ``python -m evidence.map`` studies, ``.page`` draws, ``.leave_out`` judges, ``.ship`` ships."""
