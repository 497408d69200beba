"""The Spark session: settings, versions, time zones, cancellation, and failures."""
