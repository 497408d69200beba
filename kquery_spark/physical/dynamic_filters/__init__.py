"""Dynamic filters: operators derive them from rows at run time, and scans skip rows, pages and row groups by them."""
