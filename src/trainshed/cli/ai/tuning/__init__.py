"""`trainshed ai hp-tuning-jobs …`: gcloud's grammar of hyperparameter tuning, with the name swapped."""
