"""`trainshed ai persistent-resources …`: a module for each verb."""
