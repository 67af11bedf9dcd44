"""Its presence puts this folder on the path, so that the tests below it can import `vectors` and `in_threads`."""
