"""ORC: footers and stripes, and the source that reads them."""
