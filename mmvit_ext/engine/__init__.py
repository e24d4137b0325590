"""What a run needs around the models: weights, configs, data checks, training, prediction."""
