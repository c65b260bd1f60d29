gcloud ai custom-jobs create \
  --region=us-central1 \
  --display-name=multi-node-training \
  --worker-pool-spec=machine-type=n1-highmem-16,\
replica-count=1,\
accelerator-type=NVIDIA_TESLA_T4,\
accelerator-count=4,\
container-image-uri=gcr.io/my-project/trainer:latest \
  --worker-pool-spec=machine-type=n1-highmem-16,\
replica-count=3,\
accelerator-type=NVIDIA_TESLA_T4,\
accelerator-count=4,\
container-image-uri=gcr.io/my-project/trainer:latest
