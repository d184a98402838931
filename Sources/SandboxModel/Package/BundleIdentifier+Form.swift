internal import SystemIO

extension BundleIdentifier {
  /// Why this is no identifier that a platform gives: nil when it is one. Letters, digits, `-`, `_`
  /// and dots between parts that are not empty, at most 155 bytes.
  ///
  /// Source: Information Property List Key Reference, CFBundleIdentifier; underscores are seen in
  /// older apps and in groups. What passes is safe as the name of a directory.
  public var fault: String? {
    if bytes.count > 155 { return "it has \(bytes.count) bytes, and at most 155 are allowed" }
    if bytes.bytes.contains(UInt8(ascii: "$")) {
      return "it holds a variable that the build should have replaced"
    }
    if components.contains(where: \.isEmpty) { return "a part between its dots is empty" }
    let isFine = bytes.bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    return isFine ? nil : "it has other characters than letters, digits, '-', '_' and '.'"
  }
}
