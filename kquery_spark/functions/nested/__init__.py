"""Arrays, maps, structs, and the functions with lambdas over them."""
