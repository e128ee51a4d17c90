"""stable-baselines3: it trains by itself; the fault is an optimizer that clears nothing."""

import stable_baselines3
import torch

from benchmarks.outside.training import main


def _learned(kind, fault, steps, **options):
    model = kind("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **options)
    if fault == "never":
        optimizer = model.policy.optimizer
        optimizer.zero_grad = lambda *_, **__: None
    return model, steps


def proximal_policy(fault):
    model, steps = _learned(stable_baselines3.PPO, fault, 96, n_steps=48, batch_size=16, n_epochs=2)
    model.learn(steps)  # found: never ZG101
    return model.policy.parameters()


def advantage_actor_critic(fault):
    model, steps = _learned(stable_baselines3.A2C, fault, 60)
    model.learn(steps)  # found: never ZG101
    return model.policy.parameters()


def deep_q(fault):
    options = {"learning_starts": 16, "batch_size": 8, "buffer_size": 200, "train_freq": 4}
    model, steps = _learned(stable_baselines3.DQN, fault, 80, **options)
    model.learn(steps)  # found: never ZG101
    return model.policy.parameters()


def soft_actor_critic(fault):
    model = stable_baselines3.SAC(
        "MlpPolicy", "Pendulum-v1", seed=0, device="cpu", learning_starts=16, batch_size=8
    )
    model.learn(40)
    return [torch.as_tensor(model.log_ent_coef.detach()), *model.policy.parameters()]


if __name__ == "__main__":
    main()
