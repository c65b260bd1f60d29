gcloud ai hp-tuning-jobs create \
  --region=us-central1 \
  --display-name=hp-tuning \
  --config=hp_config.yaml
