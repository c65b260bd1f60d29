"""Files of facts that come with the program, and what reads them."""
