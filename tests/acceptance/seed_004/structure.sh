gcloud ai custom-jobs create \
  --region=REGION \
  --display-name=JOB_NAME \
  --worker-pool-spec=WORKER_POOL_SPEC \
  [--config=CONFIG_FILE]
