internal import Codecs
package import SystemIO

/// A finding of an audit: a rule, the path to which it applies, and the command that fixes it.
package struct AuditFinding: Sendable, Hashable {
  package let rule: AuditRule
  /// The logical path.
  package let path: ByteString
  /// The real path on this machine.
  package let realPath: ByteString
  /// Whether the path is a directory.
  package let isDirectory: Bool
  /// The identifier of the app or group to which the container belongs, or nil if it is unknown.
  package let owner: ByteString?
  /// The number of files concerned; 0 for a declaration in a property list.
  package let files: Int
  /// The size of these files in bytes.
  package let bytes: UInt64
  /// A clause about the path: "its name suggests a cache".
  package let detail: String
  /// Distinguishes several findings of one rule at one path; empty if there can be only one.
  package let key: String
  /// The command line that fixes the data or, if only the developer can fix it, shows more about
  /// it.
  package let command: String

  /// The name of this form of fingerprints in SARIF's `partialFingerprints`.
  package static let fingerprintName = "sandboxctlFinding/v1"

  /// The fingerprint of the rule, the logical path and the key. It does not depend on sizes, times,
  /// UUIDs of containers or the location of the device.
  package var fingerprint: Fingerprint {
    let text = Array("\(rule.id)\0".utf8) + path.bytes + [0] + Array(key.utf8)
    return Fingerprint(Blake2b.hash(text).bytes.prefix(16))
  }

  /// The message. It does not contain the path, which has a separate place in each form of output.
  package var message: String { detail.isEmpty ? rule.title : "\(rule.title): \(detail)" }
}

/// The fingerprint of a finding: 128 bits of a hash, 32 hexadecimal digits as text.
package struct Fingerprint: Sendable, Hashable, CustomStringConvertible {
  private let high: UInt64
  private let low: UInt64

  /// Creates a fingerprint from 16 bytes.
  init(_ bytes: some Sequence<UInt8>) {
    var (high, low) = (UInt64(0), UInt64(0))
    for byte in bytes {
      high = high << 8 | low >> 56
      low = low << 8 | UInt64(byte)
    }
    (self.high, self.low) = (high, low)
  }

  /// Reads 32 hexadecimal digits; nil for other text.
  package init?(_ text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 32, !digits.contains(UInt8(ascii: "+")),
      let high = UInt64(String(decoding: digits[..<16], as: UTF8.self), radix: 16),
      let low = UInt64(String(decoding: digits[16...], as: UTF8.self), radix: 16)
    else { return nil }
    (self.high, self.low) = (high, low)
  }

  package var description: String {
    [high, low].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }.joined()
  }
}
