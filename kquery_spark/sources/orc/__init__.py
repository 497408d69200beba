"""ORC: footers and stripes, and the source made of them."""
