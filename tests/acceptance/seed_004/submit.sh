gcloud ai custom-jobs create \
  --region=us-central1 \
  --config=job.yaml
