"""A round of federated training, written once (`conduct`), and where its clients are: here, or each of them alone."""
