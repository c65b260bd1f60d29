"""A straight line fitted by all replicas together with TensorFlow's MultiWorkerMirroredStrategy.

The strategy finds the others and itself in TF_CONFIG, which every replica of a job has; nothing in here
knows of Trainshed. Needs tensorflow. It keeps nothing: the last line says what was learnt.
"""

import tensorflow as tf

STEPS = 200
BATCH = 32  # a replica
SLOPE, OFFSET = 3.0, -1.0  # what is to be learnt


def batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Points on the line, other ones in every replica."""
    x = tf.random.stateless_uniform([4096, 1], seed=[context.input_pipeline_id, 7], minval=-1.0)
    return tf.data.Dataset.from_tensor_slices((x, SLOPE * x + OFFSET)).repeat().batch(BATCH)


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task = strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id
    print(f"{task[0]} {task[1]}: {strategy.num_replicas_in_sync} replicas in sync", flush=True)
    with strategy.scope():
        slope = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        offset = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

    def one(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(slope * x + offset - y))
        gradients = tape.gradient(loss, [slope, offset])
        total = tf.distribute.get_replica_context().all_reduce("mean", gradients)
        slope.assign_sub(0.5 * total[0])
        offset.assign_sub(0.5 * total[1])
        return loss

    @tf.function
    def step(feed: tf.distribute.DistributedIterator) -> tf.Tensor:
        losses = strategy.run(one, args=next(feed))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    feed = iter(strategy.distribute_datasets_from_function(batches))
    loss = None
    for _ in range(STEPS):
        loss = step(feed)
    print(f"slope {slope.numpy():.3f} offset {offset.numpy():.3f} loss {float(loss):.6f}", flush=True)


if __name__ == "__main__":
    main()
