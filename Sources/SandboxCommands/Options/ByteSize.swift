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
