internal import ArgumentParser
internal import PolicyEngine

/// A number of bytes on the command line: `4096`, `200M` and `4GiB` by powers of 1024, `10MB` by
/// powers of 1000.
struct ByteSize: ExpressibleByArgument {
  let bytes: Int64

  init?(argument: String) {
    guard let bytes = Quantity.bytes(argument), bytes >= 0 else { return nil }
    self.bytes = bytes
  }
}

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
