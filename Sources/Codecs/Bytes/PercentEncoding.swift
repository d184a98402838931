/// The encoding of bytes in URIs (RFC 3986, 2.1): every byte but unreserved characters (2.3)
/// becomes `%` and two capital hexadecimal digits.
package enum PercentEncoding {
  /// Returns the encoded text. A colon is encoded, too: in the first segment of a relative path it
  /// would end a scheme.
  ///
  /// - Parameter keepsSlashes: whether slashes stay, as in a path.
  package static func encode(
    _ bytes: some Sequence<UInt8>, keepsSlashes: Bool = false
  ) -> String {
    var text: [UInt8] = []
    for byte in bytes {
      if isUnreserved(byte) || keepsSlashes && byte == UInt8(ascii: "/") {
        text.append(byte)
      } else {
        text += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of an encoded text, or nil if a `%` has no two digits after it.
  ///
  /// - Parameter plusIsSpace: whether `+` is a space, as in the queries of forms.
  package static func decode(
    _ text: some Collection<UInt8>, plusIsSpace: Bool = false
  ) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+") where plusIsSpace: bytes.append(0x20)
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value)
        else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(byte)
      }
    }
    return bytes
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
