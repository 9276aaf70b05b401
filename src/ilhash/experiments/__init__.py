"""What is measured on data: one file per figure or table."""
