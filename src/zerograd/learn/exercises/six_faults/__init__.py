"""Exercise 10, the project: six faults in one training script."""

from zerograd.learn.exercise import Exercise

EXERCISE = Exercise(
    number=10,
    name="six-faults",
    title="The project: a script with six faults",
    seconds=180.0,
    runs_every_check=True,
    names_slips=False,
    hints=(
        "Go stage by stage and ask at each step(): which backward() calls are in the bucket now? "
        "It should be those of this update, all of them, once.",
        "One clear stands in the wrong loop, one is never called, one comes too often, one comes "
        "between two calls that belong together, one comes before another loss fills its bucket "
        "again; and one clip measures the wrong thing.",
        "`zerograd check 10_six_faults.py` names the six lines; "
        "`zerograd explain CODE` says more about each rule.",
    ),
    explanation="""\
Six faults, six rules, no exception and no NaN among them:

  pretrain           cleared once per epoch: every batch adds up    ZG101
  warm_up            zero_grad without a call                       ZG103
  train_scaled       clipped while the scale was still in it        ZG301
  train_in_windows   cleared in each micro-batch, stepped in each
                     fourth: three quarters of the work is lost     ZG501
  train_gan          the generator's loss stayed in netD's bucket   ZG201
  distil             cleared between backward and step              ZG102

A test of the losses would have found one of them, the student that never learns.
The others train, only worse. That is why zerograd looks at the order of the calls
and not at the curve. Now try it on your own: zerograd check PATH.""",
)
