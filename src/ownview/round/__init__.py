"""A round of federated training, written once (`conduct`), and fleets that answer it: in this process or by bytes."""
