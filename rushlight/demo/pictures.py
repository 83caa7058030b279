"""The demo's pictures, drawn with matplotlib without a display."""

from matplotlib.figure import Figure


def draw_curves(history, path):
    """Loss and accuracy of both sets over the epochs."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    epochs = range(1, len(history.train_loss) + 1)
    for name, axes in (("loss", loss), ("accuracy", accuracy)):
        axes.plot(epochs, getattr(history, f"train_{name}"), marker=".", label="training (with dropout)")
        axes.plot(epochs, getattr(history, f"held_out_{name}"), marker=".", label="held out")
        axes.set(xlabel="epoch", title=name)
        axes.grid(alpha=0.3)
        axes.legend()
    loss.set_yscale("log")
    accuracy.set_ylim(top=1.005)
    figure.savefig(path, dpi=120)


def draw_predictions(images, labels, probabilities, path, rows=5, columns=10):
    """A sheet of held-out digits with the predicted digit: wrong ones first, in red with the right answer."""
    confidence, predicted = probabilities.max(1)
    order = (predicted == labels).long().argsort(stable=True).tolist()[: rows * columns]
    figure = Figure(figsize=(columns, 1.25 * rows), layout="constrained")
    for axes, index in zip(figure.subplots(rows, columns).flat, order):
        axes.imshow(images[index, 0].tolist(), cmap="gray_r", vmin=0, vmax=1)
        right = predicted[index].item() == labels[index].item()
        answer = "" if right else f" (is {labels[index].item()})"
        axes.set_title(
            f"{predicted[index].item()}{answer}  {confidence[index].item():.0%}",
            fontsize=8,
            color="black" if right else "red",
        )
        axes.set_axis_off()
    figure.suptitle("Held-out digits: prediction and confidence")
    figure.savefig(path, dpi=120)
