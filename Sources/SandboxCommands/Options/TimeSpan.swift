internal import ArgumentParser
internal import PolicyEngine

/// A span of time as a command line gives it: `45s`, `10m`, `2h`, `1d`, `2w`; a bare number is
/// seconds.
struct TimeSpan: ExpressibleByArgument {
  let seconds: Double

  init?(argument: String) {
    guard let seconds = Quantity.seconds(argument) ?? Int64(argument), seconds >= 0 else {
      return nil
    }
    self.seconds = Double(seconds)
  }
}
