--worker-pool-spec=machine-type=MACHINE_TYPE,\
replica-count=REPLICA_COUNT,\
accelerator-type=ACCELERATOR_TYPE,\
accelerator-count=ACCELERATOR_COUNT,\
container-image-uri=IMAGE_URI
