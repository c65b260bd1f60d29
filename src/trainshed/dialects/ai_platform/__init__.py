"""AI Platform Training (`ml` v1), Google's older API: `projects/P/jobs`, and gcloud's words for it."""
