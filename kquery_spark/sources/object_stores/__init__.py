"""Object stores: Amazon S3, Google Cloud Storage and Azure, each with its paths, options and Arrow filesystem."""
