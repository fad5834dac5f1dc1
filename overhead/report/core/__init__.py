"""The parts of the pages, and the code that draws and writes them."""
