"""Sources that change what another source returns."""
