/// Formats paths for messages.
enum PathText {
  /// Returns the names separated by slashes; bytes that are not printable UTF-8 are escaped.
  static func text(_ path: [[UInt8]]) -> String {
    path.isEmpty ? "." : path.map(name).joined(separator: "/")
  }

  private static func name(_ bytes: [UInt8]) -> String {
    if let text = String(validating: bytes, as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    {
      return text
    }
    return bytes.map { byte in
      0x20..<0x7F ~= byte
        ? String(Unicode.Scalar(byte))
        : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
