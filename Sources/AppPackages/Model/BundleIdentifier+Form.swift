internal import SandboxModel
internal import SystemIO

extension BundleIdentifier {
  /// The reason why this is not a valid platform identifier, or nil if it is one. Valid are
  /// letters, digits, `-`, `_`, and dots between non-empty parts, at most 155 bytes.
  ///
  /// Source: Information Property List Key Reference, CFBundleIdentifier; underscores occur in
  /// older apps and in groups. A valid identifier is safe as a directory name.
  package var fault: String? {
    if bytes.count > 155 { return "it has \(bytes.count) bytes, and at most 155 are allowed" }
    if bytes.bytes.contains(UInt8(ascii: "$")) {
      return "it contains a variable that the build should have replaced"
    }
    if components.contains(where: \.isEmpty) { return "it has an empty part between dots" }
    let isFine = bytes.bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    return isFine ? nil : "it has characters other than letters, digits, '-', '_' and '.'"
  }
}
