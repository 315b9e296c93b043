"""`vaezoo explore`: a page with a slider for every unit of a trained model; `vaezoo.explore` opens it from Python."""
