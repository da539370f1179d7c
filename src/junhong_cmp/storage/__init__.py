"""Object storage by URL: a local folder, a bucket of S3's kind, or memory for tests."""
