"""What crosses between clients and server: a download and an upload, their bytes, sizes and sums. One codec for all."""
