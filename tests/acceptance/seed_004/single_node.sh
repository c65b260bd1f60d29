gcloud ai custom-jobs create \
  --region=us-central1 \
  --display-name=pytorch-training \
  --worker-pool-spec=machine-type=n1-standard-32,\
replica-count=1,\
accelerator-type=NVIDIA_TESLA_V100,\
accelerator-count=8,\
container-image-uri=gcr.io/my-project/pytorch-trainer:latest
