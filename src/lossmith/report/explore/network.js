"use strict";
/* A small network with tanh units, trained on all examples at once with Adam. */

const ADAM = { rate: 0.02, first: 0.9, second: 0.999, tiny: 1e-8 };

/** A dense layer, with tanh unless it is the last. Each output has a row of weights with its bias at the end. */
class Layer {
  constructor(inputs, outputs, isLast, normal) {
    Object.assign(this, { inputs, outputs, isLast, row: inputs + 1 });
    const size = this.row * outputs;
    this.weights = Float64Array.from({ length: size }, (_, i) => (i % this.row === inputs ? 0 : normal() / Math.sqrt(inputs)));
    [this.gradient, this.mean, this.square] = [0, 0, 0].map(() => new Float64Array(size));
    this.output = new Float64Array(outputs);
    this.back = new Float64Array(inputs);
  }

  forward(input) {
    const { inputs, outputs, weights, output, row } = this;
    this.input = input;
    for (let o = 0; o < outputs; o += 1) {
      let sum = weights[o * row + inputs];
      for (let i = 0; i < inputs; i += 1) sum += weights[o * row + i] * input[i];
      output[o] = this.isLast ? sum : Math.tanh(sum);
    }
    return output;
  }

  /** Adds to the gradient of the weights, and returns that of the input. */
  backward(outputGradient) {
    const { inputs, outputs, weights, gradient, input, output, back, row } = this;
    back.fill(0);
    for (let o = 0; o < outputs; o += 1) {
      const start = o * row;
      const delta = this.isLast ? outputGradient[o] : outputGradient[o] * (1 - output[o] * output[o]);
      for (let i = 0; i < inputs; i += 1) {
        gradient[start + i] += delta * input[i];
        back[i] += delta * weights[start + i];
      }
      gradient[start + inputs] += delta;
    }
    return back;
  }

  adam(steps) {
    const [meanShare, squareShare] = [1 - ADAM.first ** steps, 1 - ADAM.second ** steps];
    for (let i = 0; i < this.weights.length; i += 1) {
      this.mean[i] = ADAM.first * this.mean[i] + (1 - ADAM.first) * this.gradient[i];
      this.square[i] = ADAM.second * this.square[i] + (1 - ADAM.second) * this.gradient[i] ** 2;
      this.weights[i] -= (ADAM.rate * this.mean[i]) / meanShare / (Math.sqrt(this.square[i] / squareShare) + ADAM.tiny);
    }
    this.gradient.fill(0);
  }
}

class Network {
  /** The same seed starts from the same weights. */
  constructor(sizes, seed) {
    const uniform = uniformNumbers(seed);
    const normal = () => normalQuantile(uniform());
    this.layers = sizes.slice(1).map((outputs, i) => new Layer(sizes[i], outputs, i === sizes.length - 2, normal));
    this.steps = 0;
  }

  logits(input) {
    let signal = input;
    for (const layer of this.layers) signal = layer.forward(signal);
    return signal;
  }

  /** One step on the mean loss of the examples [{ place, label }]; gradientOf(logits, label) is the loss's gradient. */
  train(examples, gradientOf) {
    for (const { place, label } of examples) {
      let gradient = gradientOf(this.logits(place), label);
      for (let i = 0; i < gradient.length; i += 1) gradient[i] /= examples.length;
      for (let i = this.layers.length - 1; i >= 0; i -= 1) gradient = this.layers[i].backward(gradient);
    }
    this.steps += 1;
    for (const layer of this.layers) layer.adam(this.steps);
  }
}
