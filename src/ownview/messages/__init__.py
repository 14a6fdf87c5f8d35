"""Messages between clients and server: download and upload, their bytes, sizes and sums. One codec for all."""
