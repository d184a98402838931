internal import ArgumentParser
internal import PolicyEngine

/// A span of time on the command line: `45s`, `10m`, `2h`, `1d`, `2w`. A bare number is in seconds.
struct TimeSpan: ExpressibleByArgument {
  let seconds: Double

  init?(argument: String) {
    guard let seconds = Quantity.seconds(argument) ?? Int64(argument), seconds >= 0 else {
      return nil
    }
    self.seconds = Double(seconds)
  }
}
